'use strict';
// A text with its values; one that counts has a form for each kind of number.
const plurals = new Intl.PluralRules(lang);
const t = (text, values) => (typeof text === 'string' ? text : text[plurals.select(values.n)] ?? text.other).replace(/\{(\w+)\}/g, (_, key) => values[key] ?? '');
const make = (space) => (tag, ...kids) => {
  const [name, style] = tag.split('.'), el = document.createElementNS(`http://www.w3.org/${space}`, name);
  const { label, ...props } = kids[0]?.constructor === Object ? kids.shift() : {};
  attr(el, 'class', style);
  attr(el, 'aria-label', label);
  for (const key in props) if (typeof props[key] === 'function') el.addEventListener(key, props[key]); else attr(el, key, props[key]);
  el.append(...kids.flat(2).filter(Boolean));
  return el;
};
const h = make('1999/xhtml'), svg = make('2000/svg');
const button = (label, click, props) => h('button', { type: 'button', click, ...props }, label);
// What is being done is not begun a second time by a double click.
const once = (run) => { let running = false; return async () => { if (running) return; running = true; try { await run(); } finally { running = false; } }; };
// A control of a form is `typed` from the first key on.
document.addEventListener('input', ({ target }) => { target.typed = Boolean(target.form); });
const form = (submit, ...kids) => h('form', { submit: (event) => { event.preventDefault(); submit(); } }, ...kids);
const field = (label, props) => { const input = h('input', { type: 'text', autocomplete: 'off', ...props }); return [input, h('label', label, input)]; };
const option = ([value, label]) => h('option', { value }, label);
const card = (title, ...kids) => h('section.card', { label: title }, h('h2', title), ...kids);
const text = (el, value) => { if (el.shown !== value) el.textContent = el.shown = value; };
const attr = (el, name, value) => {
  if (value == null || value === false) el.removeAttribute(name);
  else if (el.getAttribute(name) !== String(value)) el.setAttribute(name, value);
};
const quiet = (...kids) => h('p.quiet', ...kids);
const joined = (...words) => words.filter(Boolean).join(' · ');
const flag = (el, name, on) => el.classList.toggle(name, Boolean(on));
// Dates and numbers as in the reader's country, if its language is that of the page.
const locale = navigator.languages.find((name) => name.split('-')[0] === lang) ?? lang;
const format = (options) => { const f = new Intl.DateTimeFormat(locale, { hourCycle: 'h23', ...options }); return (time) => (time ? f.format(new Date(time)) : ''); };
const second = format({ timeStyle: 'medium' }), minute = format({ timeStyle: 'short' }), when = format({ dateStyle: 'medium', timeStyle: 'short' }), day = format({ dateStyle: 'short' });
// The time of day, with the date unless that is today's.
const today = () => day(now()), at = (time) => (day(time) === today() ? second : when)(time);
const decimal = new Intl.NumberFormat(locale, { maximumFractionDigits: 3, useGrouping: false });
const number = (v) => (v && (abs(v) >= 1e16 || abs(v) < 5e-4) ? v.toExponential(2) : decimal.format(v)).replaceAll('-', '−');
// Near enough for sums and differences to be numbers.
const near = (v) => max(-1e300, min(1e300, v || 0));
const span = (unit, n) => new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'short' }).format(n);
const relative = new Intl.RelativeTimeFormat(locale, { style: 'short', numeric: 'auto' });
const ago = (seconds) => (seconds < 60 ? relative.format(-floor(seconds), 'second') : seconds < 3600 ? relative.format(-floor(seconds / 60), 'minute')
  : seconds < 86400 ? relative.format(-floor(seconds / 3600), 'hour') : relative.format(-floor(seconds / 86400), 'day'));
// A micro:bit is known by the five letters that its LEDs show.
const short = (name) => /^BBC micro:bit \[(\w{5})\]$/.exec(name)?.[1] ?? name;
const chosen = (id, name) => kept(`large ${id}`, name);
const { abs, ceil, floor, max, min } = Math, still = matchMedia('(prefers-reduced-motion: reduce)');

const languages = h('select', { label: T.language, change: () => { kept('language', languages.value); location.reload(); } }, Object.entries(LANGUAGES).map(option));
languages.value = lang;

// A group of buttons is one stop of the Tab key; the arrow keys move in it.
const roving = (el) => {
  const all = [...el.querySelectorAll('button')], columns = Number(el.dataset.columns) || 1;
  el.addEventListener('keydown', (event) => {
    const i = all.indexOf(event.target), step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (i < 0 || step === undefined) return;
    event.preventDefault();
    all[i + step]?.focus();
  });
  const stop = (at) => all.forEach((b) => { b.tabIndex = b === at ? 0 : -1; });
  el.addEventListener('focusin', (event) => { if (all.includes(event.target)) stop(event.target); });
  stop(all[0]);
  return el;
};

const swap = (el, ...kids) => el.replaceChildren(...kids);
// A control by its name, and those of the parts of the page that it is in: two cards may have one of the same name.
const called = (el) => {
  const names = [el.getAttribute('aria-label') ?? el.labels?.[0]?.textContent ?? el.textContent];
  for (let part = el.parentElement; part; part = part.parentElement) names.push(part.getAttribute('aria-label') ?? '');
  return names.filter(Boolean).join('\n');
};
// What is made anew or moved by `change` has afterwards what it had: the focus, what was typed, and what was unfolded.
const keepFocus = (before, change, after = () => before) => {
  const within = (el, what) => [...el?.querySelectorAll(what) ?? []], had = document.activeElement, focused = before?.contains(had) ? called(had) : null;
  const typed = within(before, 'input, select').filter((el) => el.typed && (el.value !== el.defaultValue || el.type === 'checkbox')).map((el) => [called(el), el]), unfolded = within(before, 'details[open] > summary').map(called);
  change();
  for (const [name, was] of typed) {
    const same = within(after(), 'input, select').find((el) => called(el) === name);
    if (same && same !== was) Object.assign(same, { value: was.value, checked: was.checked, typed: true });
  }
  if (unfolded.length) for (const el of within(after(), 'summary')) if (unfolded.includes(called(el))) el.parentElement.open = true;
  if (focused === null || document.activeElement === had) return;
  const all = within(after(), 'a, button, input, select, summary, [tabindex]');
  (all.find((el) => called(el) === focused) ?? all[0])?.focus({ preventScroll: true });
};
const fill = (el, data, make) => {
  const key = JSON.stringify(data);
  if (el.key !== key) { el.key = key; keepFocus(el, () => swap(el, ...make())); }
};
// What became of an action: read out, and seen.
const voice = h('div.unseen', { role: 'status' }), toast = h('div.toast');
// An open dialog covers the page, and a browser reads out nothing behind it.
const toFront = (el) => { const front = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body; if (el.parentNode !== front) front.append(el); };
const tell = (message) => { toFront(voice); voice.textContent = message; };
let toastEnds = 0;
const say = (message, isFault) => {
  tell(message);
  toFront(toast);
  swap(toast, h('span', message), button(T.close, () => swap(toast)));
  clearTimeout(toastEnds);
  if (!isFault) toastEnds = setTimeout(() => swap(toast), 6000);
};

// What to do: the page's own words, or the gateway's, and its commands to be copied.
const COMMAND = /(?:^|[:;?] )((?:sudo|bluetoothctl|busctl|microbit-gateway) [^;,(]+)/g;
const copy = async (command) => {
  try { await navigator.clipboard.writeText(command); } catch {
    // Without HTTPS there is no clipboard but for what is selected.
    const area = h('textarea', { label: T.copy }), before = document.activeElement;
    area.value = command;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    before.focus({ preventScroll: true });
  }
  say(T.copied);
};
const command = (words) => h('p.command', h('code', words), button(T.copy, () => copy(words), { label: `${T.copy}: ${words}` }));
const reasonOf = (f) => T.causes[f.cause] ?? (f.code === 'silent' ? span('second', parseFloat(f.reason)) : f.reason);
// Faults that have the remedy of another.
const SAME = {
  connect_failed: 'closer', link_ended: 'closer', pairing_failed: 'closer', silent: 'closer', unresponsive: 'closer',
  subscribe_failed: 'closer', bond_lost: 'wants_pairing',
};
const remedy = ({ code, cause, remedy: own = '' }) => {
  const commands = [...own.matchAll(COMMAND)].map(([, words]) => words.trim()), known = T.remedies[cause] ?? T.remedies[SAME[code] ?? code];
  const words = known ?? (commands.join('; ') === own ? '' : own);
  return [words && h('p', words), !(known && own.includes('scan')) && commands.map(command)];
};
