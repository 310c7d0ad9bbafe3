// Numbering: whoever presses button A next gets the next number, and shows it.
let numbering = null;
const deviceAt = (address) => [...devices.values()].find(({ d }) => d.identifier === address);
class Numbering {
  constructor() {
    const [prefix, prefixLabel] = field(T.prefix, { maxlength: 40, value: T.prefixDefault, input: () => this.update() });
    const [next, nextLabel] = field(T.nextNumber, { type: 'number', min: 0, max: 999, value: 1, input: () => this.update() });
    Object.assign(this, { prefix, next, given: new Map(), work: Promise.resolve(), status: h('p', { role: 'status' }), done: h('ul.found'), rest: h('ul.found') });
    this.dialog = open(T.number, h('p', T.numberHelp), h('div.row', prefixLabel, nextLabel), this.status, this.done, h('details', h('summary', T.numberRest), this.rest),
      h('div.end', button(T.close, () => this.dialog.close(), { class: 'main' })));
    this.dialog.addEventListener('close', () => { numbering = null; });
    this.update();
  }

  get name() { return `${this.prefix.value.trim()} ${this.next.value}`.trim(); }

  // One after the other, so that no number is given twice.
  give(address) { this.work = this.work.then(() => this.giveNow(address)); }

  async giveNow(address) {
    const bit = deviceAt(address), known = this.given.get(address);
    if (!bit || numbering !== this) return;
    if (known) { showNumber(bit.id, bit, known.n); return; }
    const n = Number(this.next.value), name = this.name, { data, error } = await ask('device/rename', { id: bit.id, name });
    text(this.status, error ?? t(T.numbered, { name }));
    if (error) return;
    this.given.set(address, { n, name });
    this.next.value = n + 1;
    this.update();
    showNumber(data.to, bit, n);
  }

  async correct(address, name) {
    const bit = deviceAt(address), { error } = await ask('device/rename', { id: bit?.id, name });
    text(this.status, error ?? t(T.numbered, { name }));
    if (!error) this.given.get(address).name = name;
  }

  update() {
    const entry = ([address, { name }]) => {
      const input = h('input', { type: 'text', label: T.name, value: name, maxlength: 64 });
      return h('li', form(() => this.correct(address, input.value.trim()), input, h('button', T.save)));
    };
    fill(this.done, [...this.given.keys()], () => [...this.given].reverse().map(entry));
    const rest = [...devices.values()].filter(({ d }) => !this.given.has(d.identifier) && d.session !== 'listening').map((bit) => [bit.d.identifier, bit.id, nameOf(bit)]).sort((a, b) => collate(a[2], b[2]));
    fill(this.rest, [rest, this.name], () => rest.map(([address, id, name]) => h('li', h('div.row', h('strong', name),
      button(T.identify, () => act('device/identify', { id }, t(T.identified, { name })), { label: `${T.identify}: ${name}` }), button(`→ ${this.name}`, () => this.give(address), { label: `${name} → ${this.name}` })))));
  }
}
// The number alone if the LEDs can show a text, else what Identify shows.
const showNumber = (id, bit, n) => (bit.props.get('led_text')?.d.writable ? ask('property/set', { id, property: 'led_text', value: String(n), ttl: 60 }) : ask('device/identify', { id }));
