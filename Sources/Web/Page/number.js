// Numbering: the gateway gives whoever presses button A the next number. This shows it, on as many pages as there are.
let numbering = null;
const toNumber = (n) => [...devices.values()].filter(({ id, d, props }) => n.given.includes(id) || d.session !== 'listening' && (d.profile === 'microbit' || props.has('button_a')));
const progress = (n) => joined(t(T.numberOf, { given: n.given.length, all: toNumber(n).length, waiting: n.waiting }), n.without_leds && t(T.numberDark, { n: n.without_leds }));
class Numbering {
  constructor() {
    const [prefix, prefixLabel] = field(T.prefix, { maxlength: 40, value: T.prefixDefault, change: () => act('number', { prefix: prefix.value.trim() }) });
    const [next, nextLabel] = field(T.nextNumber, { type: 'number', min: 0, max: 999, value: 1, required: true, change: () => { if (next.reportValidity()) act('number', { next: Number(next.value) }); } });
    // Those whose number was announced.
    this.told = new Set();
    Object.assign(this, { prefix, next, status: h('p', { role: 'status' }), count: quiet(), done: h('ul.found'), rest: h('ul.found') });
    this.dialog = open(T.number, h('p', T.numberHelp), h('div.row', prefixLabel, nextLabel), this.count, this.status, this.done, h('details', h('summary', T.numberRest), this.rest),
      h('div.end', button(T.close, () => this.dialog.close(), { class: 'main' })));
    this.dialog.addEventListener('close', () => { numbering = gateway.numbering = null; act('number', { time: 0 }); });
    if (gateway.numbering) { gatewayChanged = true; draw(); } else act('number', { prefix: T.prefixDefault, next: 1 });
  }

  async correct(id, name) {
    const { error } = await ask('device/rename', { id, name });
    text(this.status, error ?? t(T.numbered, { name }));
  }

  update() {
    const n = gateway.numbering, last = this.shown;
    this.shown = n;
    if (!n) { if (last) text(this.status, T.numberEnded); this.told.clear(); return; }
    const given = n.given.map((id) => devices.get(id)).filter(Boolean), bits = toNumber(n).filter((bit) => !given.includes(bit));
    const newest = given.filter(({ d }) => !this.told.has(d.identifier)).at(-1);
    for (const { d } of given) this.told.add(d.identifier);
    for (const key of ['prefix', 'next']) if (document.activeElement !== this[key] || key === 'next' && newest) this[key].value = n[key];
    if (n.problem || newest || !last || last.problem) text(this.status, n.problem ?? (newest ? t(T.numbered, { name: nameOf(newest) }) : ''));
    text(this.count, progress(n));
    const entry = ({ id, d }) => {
      const input = h('input', { type: 'text', label: `${T.name}: ${d.name}`, value: d.name, maxlength: 64 });
      return h('li', form(() => this.correct(id, input.value.trim()), input, h('button', T.save)));
    };
    fill(this.done, given.map(({ id, d }) => [id, d.name]), () => given.reverse().map(entry));
    const rest = bits.map((bit) => [bit.id, nameOf(bit)]).sort((a, b) => collate(a[1], b[1])), label = `${T.identify} → ${n.prefix} ${n.next}`;
    fill(this.rest, [rest, label], () => rest.map(([id, name]) => h('li', h('div.row', h('strong', name), button(label, () => act('number', { id }), { label: `${name}: ${label}` })))));
  }
}
