'use strict';
// The texts are there before the script of the page runs.
const LANGUAGES = { en: 'English', de: 'Deutsch', es: 'Español', fr: 'Français', it: 'Italiano', nl: 'Nederlands', pt: 'Português', ja: '日本語', zh: '简体中文' };
const kept = (key, value) => { try { if (value !== undefined) localStorage.setItem(key, value); return localStorage.getItem(key); } catch { return null; } };
const lang = [kept('language'), document.documentElement.dataset.language, ...navigator.languages.map((name) => name.split('-')[0])].find((name) => Object.hasOwn(LANGUAGES, name)) ?? 'en';
document.documentElement.lang = lang;
let T = {};
const textsOf = (name) => fetch(`texts/${name}.json`).then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(answer.status))));
const load = (delay) => textsOf(lang).then((texts) => {
  T = texts;
  const script = document.createElement('script');
  script.src = 'page.js';
  script.onerror = () => { script.remove(); again(delay); };
  document.head.append(script);
}).catch(() => again(delay));
const again = (delay) => setTimeout(load, delay, Math.min(delay * 2, 5000));
load(500);
