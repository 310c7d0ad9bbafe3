const time = (ms) => (ms >= 1000 ? `${number(ms / 1000)} s` : `${number(ms)} ms`);
const show = (value, d = {}) => {
  if (value == null) return '–';
  if (typeof value === 'number') return d.unit === 'ms' ? time(value) : number(value);
  if (typeof value === 'boolean') return value ? T.on : T.off;
  if (typeof value === 'string') return d.type === 'choice' ? (Object.hasOwn(T.words, value) ? T.words[value] : value) : value;
  return Array.isArray(value) ? value.map((v) => show(v)).join(', ') || '–' : Object.entries(value).map(([key, v]) => `${key} ${full(v, { unit: d.units?.[key] })}`).join(' · ');
};
const unitOf = (value, d) => (typeof value === 'number' && d.unit !== 'ms' && d.unit || '');
const full = (value, d) => `${show(value, d)} ${unitOf(value, d)}`.trim().replace(' °', (s) => (d.unit === '°' ? '°' : s));

// Writing a value. `wanted` is what was chosen here and has no answer yet.
const set = async (bit, p, value) => {
  const turn = p.turn = (p.turn ?? 0) + 1;
  Object.assign(p, { wanted: value, problem: '' });
  touch(bit, p.name);
  const { data, error } = await ask('property/set', { id: bit.id, property: p.name, value });
  if (p.turn !== turn) return;
  p.wanted = undefined;
  if (error) p.problem = t(T.notSet, { value: full(value, p.d), reason: error });
  tell(p.problem || writeText({ d: { ...p.d, write: data } })[0] || (data.status === 'superseded' ? '' : t(T.confirmed, { title: p.d.title, value: full(data.actual ?? value, p.d) })));
  touch(bit, p.name);
};
const underWay = (p) => p.wanted ?? (['writing', 'pending', 'deferred'].includes(p.d.write?.status) ? p.d.write.requested : undefined);
// What became of it, and whether that is a failure.
const writeText = (p) => {
  const write = p.d.write, asked = full(write?.requested, p.d);
  if (p.wanted !== undefined) return [t(T.setting, { value: full(p.wanted, p.d) })];
  if (p.problem) return [p.problem, true];
  switch (write?.status) {
    case 'writing': return [t(T.setting, { value: asked })];
    case 'pending': case 'deferred': return [t(T.pending, { value: asked })];
    case 'adjusted': return [t(T.adjusted, { actual: full(write.actual, p.d), value: asked })];
    case 'rejected': case 'failed': case 'timeout': return [t(T.notSet, { value: asked, reason: write.reason ?? T.noReason }), true];
    case 'accepted': case 'sent': return [t(T.sent, { time: at(write.time) })];
    default: return [''];
  }
};
const writeNote = () => {
  const el = h('p.note');
  return { el, update(p) { const [words, isFault] = writeText(p); text(el, words); flag(el, 'fault', isFault); } };
};

// Views of a value: { el, update(p) }.
const words = () => {
  const value = h('span'), unit = h('span.unit'), el = h('span.value', value, unit);
  return { el, update(p) {
    flag(el, 'words', hasValue(p) && typeof p.d.value !== 'number');
    text(value, isEvent(p) && !hasValue(p) ? T.nothingYet : show(p.d.value, p.d));
    text(unit, unitOf(p.d.value, p.d));
  } };
};
const press = (bit) => {
  const el = h('span.press');
  return { el, update(p) {
    const last = p.log[0];
    // By radio some programs send no release.
    const isReleased = bit.d.profile === 'microbit' || p.log.some((event) => event.value === 'press_end');
    flag(el, 'down', isReleased && ['press_start', 'long_press_start'].includes(p.d.value));
    text(el, last ? `${show(last.value, p.d)} ${at(last.time)}` : T.notPressed);
  } };
};
const dial = (...parts) => {
  const word = h('span');
  return [word, h('span.way', svg('svg', { viewBox: '-22 -22 44 44', 'aria-hidden': 'true' }, svg('circle', { r: 20 }), parts), word)];
};
const direction = () => {
  const ball = svg('circle.ball', { r: 5 }), [word, el] = dial(svg('path', { d: 'M-5 0H5M0-5V5' }), ball);
  return { el, update(p) {
    const { x = 0, y = 0, z = 0 } = p.d.value ?? {}, scale = 15 / max(1000, Math.hypot(x, y)), far = (v, than = 800) => abs(v) > than;
    attr(ball, 'cx', (x * scale).toFixed(1));
    attr(ball, 'cy', (y * scale).toFixed(1));
    const side = x > 0 ? T.right : T.left;
    text(word, !hasValue(p) ? '–' : far(z) ? (z < 0 ? T.faceUp : T.faceDown) : far(y) ? (y > 0 ? T.logoUp : T.logoDown)
      : `${T.tilted} ${far(x, 300) ? side : ''}`);
  } };
};
const compass = () => {
  const needle = svg('path.ball', { d: 'M0-17L5 0H-5Z' }), [word, el] = dial(needle);
  return { el, update(p) {
    attr(needle, 'transform', `rotate(${Number(p.d.value) || 0})`);
    text(word, hasValue(p) ? `${number(p.d.value)}° ${T.points[(Math.round(p.d.value / 45) % 8 + 8) % 8]}` : '–');
  } };
};
const picture = (p, bit) => {
  const { rows, columns, writable, title } = p.d, pixels = (value) => [...String(value ?? '').replaceAll('/', '').padEnd(rows * columns, '.')].map((c) => c === '#');
  const change = (f) => set(bit, p, pixels(underWay(p) ?? p.d.value).map((on, i) => (f(on, i) ? '#' : '.') + ((i + 1) % columns || i + 1 === rows * columns ? '' : '/')).join(''));
  const cells = Array.from({ length: rows * columns }, (_, i) => (writable
    ? button('', () => change((on, j) => on !== (i === j)), { label: t(T.led, { row: floor(i / columns) + 1, column: i % columns + 1 }) }) : h('span')));
  const el = h('span.led', { role: writable ? 'group' : 'img', label: title, 'data-columns': columns }, cells);
  el.style.gridTemplateColumns = `repeat(${columns}, auto)`;
  if (writable) roving(el);
  return { el, tools: writable && h('div.row', button(T.clear, () => change(() => false)), button(T.fill, () => change(() => true))), update(p) {
    const shown = pixels(p.d.value), draft = pixels(underWay(p) ?? p.d.value);
    attr(el, 'aria-label', `${title}: ${t(T.leds, { n: shown.filter(Boolean).length })}`);
    cells.forEach((cell, i) => {
      flag(cell, 'on', draft[i]);
      flag(cell, 'draft', draft[i] !== shown[i]);
      if (writable) { attr(cell, 'aria-pressed', String(draft[i])); cell.disabled = !bit.d.online; }
    });
  } };
};
const view = (p, bit) => {
  const { type, fields, unit, notifies } = p.d;
  return type === 'picture' ? picture(p, bit) : type === 'record' && unit === 'mg' && fields?.join('') === 'xyz' ? direction()
    : unit === '°' && isNumber(p) ? compass() : isEvent(p) && type === 'choice' && notifies ? press(bit) : words();
};

// Choosing a value: the one that was read back is marked; one that is under way has a dashed frame.
const choices = (p) => p.d.choices ?? (p.name === 'period' && p.d.unit === 'ms' && [1, 2, 3, 4, 5].map((s) => ({ label: s, value: s * 1000 })));
const chooser = (p, bit) => {
  const isTime = p.d.unit === 'ms', scale = isTime ? 1000 : 1, [low, high] = p.d.range ?? [], note = writeNote();
  const all = choices(p).map(({ label, value }) => [value, button(label, () => set(bit, p, value), { label: isTime && t(T.every, { time: time(value) }) })]);
  const input = h('input', { type: 'number', placeholder: T.other, label: T.otherLabel, step: 'any', min: low / scale, max: high / scale, blur: () => touch(bit, p.name) });
  const el = h('div.choice', { role: 'group', label: isTime ? T.period : p.d.title }, all.map(([, b]) => b));
  roving(el);
  if (isTime) el.append(form(() => { input.typed = false; if (input.value) set(bit, p, Math.round(input.value * scale)); }, input, h('span.quiet', 's'), h('button', T.set)));
  return { el: h('div', el, note.el), update(p) {
    for (const [value, choice] of all) {
      attr(choice, 'aria-pressed', String(value === p.d.value));
      attr(choice, 'aria-busy', value === underWay(p) && 'true');
    }
    const other = all.some(([value]) => value === p.d.value) || !hasValue(p) ? '' : String(p.d.value / scale);
    if (document.activeElement !== input && !input.typed && input.last !== other) input.value = input.last = other;
    note.update(p);
  } };
};
// Every other value that can be set.
const editor = (p, bit) => {
  const { type, range, max_length: most, title, values } = p.d, note = writeNote(), isJSON = ['record', 'list', 'flags'].includes(type);
  const [input, label] = type === 'boolean' ? field(title, { type: 'checkbox' })
    : isNumber(p) ? field(title, { type: 'number', step: type === 'integer' ? 1 : 'any', min: range?.[0], max: range?.[1], required: true })
      : field(type === 'text' ? T.text : title, { maxlength: !isJSON && most, required: true });
  const select = type === 'choice' && h('select', { label: title }, values.map((v) => h('option', { value: v }, show(v, p.d))));
  const value = () => {
    if (type === 'boolean') return input.checked;
    if (isNumber(p)) return Number(input.value);
    try { return isJSON ? JSON.parse(input.value) : (select || input).value; } catch { return input.value; }
  };
  const control = select || input;
  let last;
  const el = form(() => { control.typed = false; set(bit, p, value()); }, select || label, h('button', isEvent(p) ? T.send : T.set));
  return { el: h('div.set', el, note.el), update(p) {
    const next = isJSON ? JSON.stringify(p.d.value) : p.d.value;
    note.update(p);
    if (isEvent(p) || last === next || control.typed || el.contains(document.activeElement)) return;
    last = next;
    if (type === 'boolean') input.checked = next;
    else control.value = next ?? '';
  } };
};
