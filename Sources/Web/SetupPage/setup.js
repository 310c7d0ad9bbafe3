
const S = T.setup, NEW_CODE = 'sudo microbit-gateway setup', isHere = /^(localhost|127\.|\[::1)/.test(location.hostname);
const main = h('main'), problem = h('div.problem', { role: 'alert' });
const findingText = (f) => (T.findings[f.code] ? t(T.findings[f.code], { ...f, reason: reasonOf(f) }) : f.text);
const complain = (...kids) => {
  swap(problem, ...kids);
  problem.scrollIntoView({ block: 'nearest' });
};
const show = (...kids) => swap(main, ...kids, problem);
let code = '', polling = 0;
const endPolling = () => { clearInterval(polling); polling = 0; };

const post = async (verb, body) => {
  try {
    const answer = await fetch(`api/setup/${verb}`, { method: 'POST', headers: { 'content-type': 'application/json' }, credentials: 'omit', body: JSON.stringify({ code, ...body }) });
    return { ...(await answer.json()), isGood: answer.ok, status: answer.status };
  } catch { return { reason: 'away' }; }
};
// Why a request was refused, in words; where the code is wrong, it is asked for again.
const refused = ({ reason, seconds, time, text: words, findings = [], error }) => {
  const isCode = ['wrong', 'renewed'].includes(reason);
  if (isCode || reason === 'done') endPolling();
  if (reason === 'done') return show(h('p', t(S.done, { time: when(time) })), h('p', h('a', { href: './' }, T.back)));
  if (isCode && main.firstChild !== door) show(door);
  complain(...(reason === 'broker' ? [h('p.fault', S.trouble), ...findings.map((f) => h('div.finding fault', findingText(f), remedy(f))), button(S.insist, () => submit(true))]
    : reason === 'invalid' ? [h('p.fault', `${S.invalid} ${words}`)]
      : reason === 'wait' ? [h('p.fault', t(S.wait, { n: seconds }))]
        : [h('p.fault', S[reason] ?? error ?? T.noAnswer), ...(reason === 'renewed' ? [command(NEW_CODE)] : [])]));
};

// The code

const [codeInput, codeLabel] = field(S.code, { autocapitalize: 'characters', spellcheck: 'false', required: true, maxlength: 20, class: 'code' });
const enter = once(async () => {
  code = codeInput.value;
  swap(problem);
  const answer = await post('situation');
  if (!answer.isGood) return refused(answer);
  show(questions);
  update(answer);
  endPolling();
  polling = setInterval(poll, 2000);
  questions.querySelector('h2').focus();
});
const door = card(S.code, h('p', S.codeHelp), command(NEW_CODE), form(enter, codeLabel, h('button.main', S.next)));

// The questions

const choice = (title, name, help, ...options) => {
  const panels = new Map(), group = h('div.options', { role: 'radiogroup', label: title });
  const change = () => { for (const [value, panel] of panels) panel.hidden = group.querySelector(':checked').value !== value; };
  options.forEach(([value, label, panel], i) => {
    group.append(h('label.option', h('input', { type: 'radio', name, value, checked: i === 0, change }), h('span', label)));
    if (panel) { panels.set(value, panel); group.append(panel); }
  });
  change();
  const el = card(title, help && quiet(help), group);
  return { el, value: () => group.querySelector(':checked').value };
};
const [pagePassword, pagePasswordLabel] = field(S.password, { maxlength: 128, minlength: 4 });
const [host, hostLabel] = field(S.host, { maxlength: 253 }), [port, portLabel] = field(S.port, { type: 'number', min: 1, max: 65535, value: 1883 });
const [user, userLabel] = field(S.user, { maxlength: 128 }), [password, passwordLabel] = field(S.password, { type: 'password', maxlength: 1024 });
const tls = h('input', { type: 'checkbox', change: () => { const usual = tls.checked ? [1883, 8883] : [8883, 1883]; if (Number(port.value) === usual[0]) port.value = usual[1]; } });
const [area, areaLabel] = field(S.area, { maxlength: 64 });
const local = h('div.panel'), inRange = h('ul.others range');
const who = choice(S.who, 'who', '', ['network', S.network, h('div.panel', pagePasswordLabel, quiet(S.passwordHelp))], ['computer', S.computer]);
const broker = choice(S.broker, 'broker', S.brokerHelp, ['here', S.here, local],
  ['other', S.other, h('div.panel', h('div.row', hostLabel, portLabel), h('label.option', tls, h('span', S.tls)), h('div.row', userLabel, passwordLabel))]);
const which = choice(S.which, 'which', '', ['all', S.all], ['join', S.joined]);
const save = h('button.main', S.save);
const questions = h('form', { novalidate: true, submit: (event) => { event.preventDefault(); submit(false); } },
  who.el, broker.el, which.el, card(T.area, areaLabel), card(S.inRange, inRange), h('div.end', save));
questions.querySelector('h2').tabIndex = -1;

const update = (found) => {
  fill(local, found.broker, () => (found.broker ? [quiet(S.isHere)] : [quiet(S.notHere), command('sudo apt install mosquitto')]));
  fill(inRange, [found.findings, found.devices], () => (found.findings.length ? found.findings.map((f) => h(`li.finding ${f.level}`, h('div', h('strong', findingText(f)), remedy(f))))
    : found.devices.length ? found.devices.map(({ name, rssi }) => h('li', h('strong', short(name)), rssi && h('span.quiet', `${number(rssi)} dBm`)))
      : [h('li', h('div', h('p', S.none), quiet(T.makecode)))]));
};
const poll = async () => {
  const answer = await post('situation');
  // An answer to the last one may come after that to the submission.
  if (!polling) return;
  if (answer.isGood) update(answer);
  // The gateway was set up elsewhere, and serves its page.
  else if ([401, 404].includes(answer.status)) location.replace('./');
  else if (answer.reason !== 'away') refused(answer);
};

const invalid = (input, words) => {
  complain(h('p.fault', words));
  input.focus();
};
const submit = async (insist) => {
  const answers = { page: who.value(), microbits: which.value(), area: area.value.trim() || undefined, insist };
  if (answers.page === 'network') {
    if ([...pagePassword.value].length < 4) return invalid(pagePassword, S.passwordHelp);
    answers.page_password = pagePassword.value;
  }
  if (broker.value() === 'other') {
    if (!host.value.trim()) return invalid(host, S.host);
    Object.assign(answers, { host: host.value.trim(), port: Number(port.value), tls: tls.checked, username: user.value || undefined, password: password.value || undefined });
  }
  save.disabled = true;
  complain(h('p', insist ? T.loading : S.trying));
  const answer = await post('submit', { answers });
  save.disabled = false;
  if (!answer.isGood) return refused(answer);
  endPolling();
  swap(problem);
  finish(answers.page === 'network' || isHere);
};
const finish = (opens) => {
  const slow = h('div', { hidden: true }, h('p', S.slow), command('sudo microbit-gateway doctor'));
  show(card(T.saved, h('p', S.saved), opens ? h('p', S.opens) : [h('p', S.there), command(`http://127.0.0.1:${location.port || 80}/`)], slow), card(S.inRange, inRange));
  scrollTo(0, 0);
  if (!opens) return;
  // Without credentials no browser asks for the password before the page is there.
  setInterval(() => fetch('health', { credentials: 'omit', cache: 'no-store' }).then(({ status }) => { if (status !== 404) location.replace('./'); }).catch(() => {}), 1000);
  setTimeout(() => { slow.hidden = false; }, 60000);
};

document.title = S.title;
document.body.append(h('header', h('h1', S.title), languages), main, toast, voice);
show(door);
codeInput.focus();
