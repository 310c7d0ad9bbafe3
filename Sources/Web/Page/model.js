// What the gateway has told. Of a device: `d` as sent, and `props` by name; of a property: `d` as sent, and what is kept
// here of its values.
const devices = new Map(), dirty = new Map(); // `dirty`: what to draw anew: names by id; '' is the device itself
let gateway = {}, round = 0, connected = false, began = false, heard = 0, skew = 0, problem = '';
let gatewayChanged = true, listChanged = true, frame = 0;
const now = () => Date.now() + skew;
const draw = () => { frame ||= requestAnimationFrame(render); };
const touch = (bit, name = '') => {
  if (!dirty.has(bit.id)) dirty.set(bit.id, new Set());
  dirty.get(bit.id).add(name);
  draw();
};
const isEvent = (p) => p.d.kind === 'event';
const isNumber = (p) => ['integer', 'number'].includes(p.d.type) && !isEvent(p);
const isSetting = (p) => isNumber(p) && p.d.setting;
const hasValue = (p) => p.d.value != null;
const propsOf = (bit) => [...bit.props.values()];
const nameOf = (bit) => short(bit.d.name ?? bit.d.bluetooth_name) ?? bit.id;
const bluetoothIsOff = () => gateway.adapters?.length > 0 && gateway.adapters.every(({ state }) => state !== 'on');
// What is heard by radio needs no Bluetooth.
const isOff = ({ d }) => !d.online && d.session !== 'disabled' && !d.identifier.startsWith('radio:') && bluetoothIsOff();
const isFaulty = ({ d }) => !d.online && d.session !== 'disabled' && Boolean(d.last_error && d.session === 'waiting' || d.wants_pairing);
const stateOf = (bit) => {
  const { d } = bit, used = /^used by the gateway (.*)$/.exec(d.state);
  if (used) return t(T.states.used, { name: used[1] });
  if (isOff(bit)) return T.bluetoothOff;
  if (d.turn) return t(T.states.turn, { n: d.turn.position });
  const state = T.states[d.session === 'listening' ? (d.online ? 'heard' : 'not_heard') : d.session] ?? d.state;
  return d.attempt > 1 && ['waiting', 'connecting'].includes(d.session) ? t(T.states.attempt, { state, n: d.attempt }) : state;
};
// The text of a finding in the language of the page, if it has one.
const findingText = (f) => (T.findings[f.code] ? t(T.findings[f.code], { ...f, reason: reasonOf(f), device: devices.has(f.device) ? nameOf(devices.get(f.device)) : f.device }) : f.text);
const troubleText = (f) => t(T.findings[f.code], { ...f, reason: reasonOf(f), device: '' }).replace(/^\s*[:：]\s*/, '');
const troubleOf = ({ id, d }) => {
  const found = gateway.findings?.find((f) => f.device === id && T.findings[f.code]);
  return found ? troubleText(found) : d.last_error;
};
// What has happened, in the language of the page, if it has a text for it.
const happened = (e) => {
  const p = devices.get(e.device)?.props.get(e.property);
  if (p && e.code === 'not_set') return `${p.d.title}: ${t(T.notSet, { value: full(e.value, p.d), reason: e.reason })}`;
  return T.happened[e.code] ? t(T.happened[e.code], { ...e, state: T.adapterStates[e.state] ?? e.state }) : T.findings[e.code] ? troubleText(e) : e.text;
};
// How old a value is, in words, unless it is live.
const ageOf = (bit, p) => {
  if (!hasValue(p) || isEvent(p) || !p.d.time) return '';
  const seconds = max(0, (now() - Date.parse(p.d.time)) / 1000);
  return bit.d.online && (seconds < 60 || !p.d.notifies) ? '' : ago(seconds);
};
// The spark line shows the last five minutes, 120 points.
const SPARK = 300000;
const sample = (p, time) => {
  if (typeof p.d.value !== 'number' || time === p.sampled) return;
  p.sampled = time;
  while (p.spark.at(-1)?.[0] > time) p.spark.pop();
  const last = p.spark.at(-1), slot = (t) => floor(t / 2500);
  if (last && !p.broken && slot(last[0]) === slot(time)) last[1] = p.d.value;
  else p.spark.push([time, p.d.value, p.broken]);
  p.broken = false;
  while (p.spark[0][0] < time - SPARK) p.spark.shift();
};
const find = ({ device, property }) => {
  const bit = devices.get(device), p = bit?.props.get(property);
  if (p) touch(bit, property);
  return p;
};
const take = {
  gateway(data) {
    const trouble = () => JSON.stringify([bluetoothIsOff(), gateway.findings]), was = trouble();
    gateway = data;
    gatewayChanged = true;
    if (was !== trouble()) for (const bit of devices.values()) touch(bit);
  },
  device({ properties, ...d }) {
    for (const p of properties) {
      p.setting = p.writable && !p.notifies;
      if (gateway.read_only) p.writable = false;
      if (d.profile === 'microbit' && !p.named) p.title = T.titles[p.name] ?? p.title;
    }
    const bit = devices.get(d.id) ?? { id: d.id, props: new Map() }, before = bit.props;
    const shape = JSON.stringify(properties.map((p) => [p.name, p.title, p.type, p.unit, p.writable]));
    if (bit.d?.name !== d.name || bit.d?.area !== d.area || bit.shape !== shape) listChanged = true;
    devices.set(d.id, bit);
    Object.assign(bit, { d, round, shape });
    bit.props = new Map(properties.map((d) => {
      const p = before.get(d.name) ?? { name: d.name, spark: [], log: [] };
      if (d.write?.time !== p.d?.write?.time) p.problem = '';
      p.d = d;
      if (isEvent(p) && hasValue(p) && p.log[0]?.time !== d.time) p.log = [{ value: d.value, time: d.time }, ...p.log].slice(0, 12);
      if (d.time) sample(p, Date.parse(d.time));
      if (!bit.d.online) p.broken = true;
      return [d.name, p];
    }));
    touch(bit);
  },
  ready(data) {
    for (const bit of devices.values()) if (bit.round !== round) take.removed(bit);
    skew = Date.parse(data.time) - Date.now();
    if (began && !connected) tell(T.again);
    connected = began = listChanged = true;
    loadCharts();
  },
  removed({ id }) { devices.delete(id); dirty.delete(id); listChanged = true; },
  values({ time, values }) {
    // The clock of one of both was set: all times are others.
    if (connected && abs(Date.parse(time) - now()) > 30000) abort.abort();
    for (const device in values) for (const property in values[device]) {
      const p = find({ device, property });
      if (!p) continue;
      [p.d.value, p.d.count] = values[device][property];
      p.d.time = time;
      sample(p, Date.parse(time));
    }
  },
  happened(data) {
    const p = find(data);
    if (!p || !isEvent(p)) return;
    // The first one ever has perhaps come with the device.
    p.log = [data, ...p.log.filter((e) => e.time !== data.time || e.value !== data.value)].slice(0, 12);
  },
  write(data) {
    const p = find(data);
    if (p) { p.d.write = data.write; p.problem = ''; }
  },
};

// The stream is read as it arrives, so that nothing queues here: what a slow page leaves in the connection makes the
// gateway merge. Unlike an EventSource, this also notices silence.
let abort = new AbortController(), wake = () => {};
const follow = async () => {
  for (let delay = 500; ; delay = min(delay * 2, 5000)) {
    while (idle) await new Promise((resolve) => { wake = resolve; });
    round += 1;
    abort = new AbortController();
    heard = Date.now();
    try {
      const answer = await fetch('api/events', { signal: abort.signal, cache: 'no-store' });
      problem = answer.ok ? '' : await failure(answer);
      const reader = answer.ok && answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = '', chunk; reader && !(chunk = await reader.read()).done;) {
        heard = arrived = Date.now();
        const parts = (rest + chunk.value).split('\n\n');
        rest = parts.pop();
        for (const part of parts) {
          const [, event, data] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
          if (data) take[event]?.(JSON.parse(data));
        }
        if (connected) delay = 250;
        draw();
      }
    } catch { /* it is tried again */ }
    abort.abort();
    if (!idle) {
      if (connected) { tell(T.lost); seen = arrived; }
      connected = false;
      draw();
    }
    await new Promise((resolve) => { wake = resolve; setTimeout(resolve, delay); });
  }
};
let seen = 0, arrived = 0;
const check = () => { if (!idle && Date.now() - heard > 40000) abort.abort(); };
setInterval(check, 5000);
// A browser has six connections to a host for all of its tabs: one that nobody sees for a minute leaves its own to others.
let idle = false, unseen = 0;
const retry = () => { abort.abort(); setTimeout(() => wake(), 50); };
const look = () => {
  clearTimeout(unseen);
  if (document.hidden) { unseen = setTimeout(() => { idle = true; abort.abort(); }, 60000); return; }
  idle = false;
  check();
  if (!connected && Date.now() - heard > 3000) retry();
  wake();
  draw();
};
for (const event of ['online', 'pageshow', 'visibilitychange']) addEventListener(event, look, true);
look();
addEventListener('pagehide', () => abort.abort());

const failure = async (answer) => {
  if (answer.status === 401) return T.reload;
  if (answer.status === 429) return T.guesses;
  try { const { error } = await answer.json(); return error === 'too many pages are open' ? T.tooMany : error; } catch { return t(T.failed, { status: answer.status }); }
};
// The answer to a request: { data } or { error }.
const ask = async (verb, body) => {
  try {
    const answer = await fetch(`api/request/${verb}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    return answer.ok ? { data: (await answer.json()).data ?? {} } : { error: await failure(answer) };
  } catch { return { error: T.noAnswer }; }
};
const act = async (verb, body, done) => {
  const { data, error } = await ask(verb, body);
  if (error) say(error, true); else if (done) say(done);
  return data;
};

