// Numbering: the gateway gives whoever presses button A the next number. This shows it, on as many pages as there are.
let numbering = null;
class Numbering {
  constructor() {
    const begin = () => act('number', { prefix: this.prefix.value.trim(), next: Number(this.next.value) });
    const [prefix, prefixLabel] = field(T.prefix, { maxlength: 40, value: T.prefixDefault, change: begin });
    const [next, nextLabel] = field(T.nextNumber, { type: 'number', min: 0, max: 999, value: 1, change: begin });
    Object.assign(this, { prefix, next, status: h('p', { role: 'status' }), count: quiet(), done: h('ul.found'), rest: h('ul.found') });
    this.dialog = open(T.number, h('p', T.numberHelp), h('div.row', prefixLabel, nextLabel), this.count, this.status, this.done, h('details', h('summary', T.numberRest), this.rest),
      h('div.end', button(T.close, () => this.dialog.close(), { class: 'main' })));
    this.dialog.addEventListener('close', () => { numbering = gateway.numbering = null; act('number', { time: 0 }); });
    if (gateway.numbering) this.update(); else begin();
  }

  async correct(id, name) {
    const { error } = await ask('device/rename', { id, name });
    text(this.status, error ?? t(T.numbered, { name }));
  }

  update() {
    const n = gateway.numbering, last = this.shown;
    this.shown = n;
    if (!n) { if (last) text(this.status, T.numberEnded); return; }
    for (const key of ['prefix', 'next']) if (document.activeElement !== this[key] || n.given.length !== last?.given.length) this[key].value = n[key];
    const given = n.given.map((id) => devices.get(id)).filter(Boolean), bits = [...devices.values()].filter((bit) => !given.includes(bit) && bit.d.session !== 'listening');
    if (n.problem || given.length !== last?.given.length) text(this.status, n.problem ?? (given.length ? t(T.numbered, { name: nameOf(given.at(-1)) }) : ''));
    text(this.count, joined(t(T.numberOf, { given: given.length, all: bits.length + given.length, waiting: n.waiting }), n.without_leds && t(T.numberDark, { n: n.without_leds })));
    const entry = ({ id, d }) => {
      const input = h('input', { type: 'text', label: `${T.name}: ${d.name}`, value: d.name, maxlength: 64 });
      return h('li', form(() => this.correct(id, input.value.trim()), input, h('button', T.save)));
    };
    fill(this.done, given.map(({ id, d }) => [id, d.name]), () => given.reverse().map(entry));
    const rest = bits.map((bit) => [bit.id, nameOf(bit)]).sort((a, b) => collate(a[1], b[1])), label = `${T.identify} → ${n.prefix} ${n.next}`;
    fill(this.rest, [rest, label], () => rest.map(([id, name]) => h('li', h('div.row', h('strong', name), button(label, () => act('number', { id }), { label: `${name}: ${label}` })))));
  }
}
