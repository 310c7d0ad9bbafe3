// Numbering: whoever presses button A next gets the next number, and shows it. The gateway lets those that wait for a press show an
// A, and keep their connection, as long as it is told so.
let numbering = null;
const deviceAt = (address) => [...devices.values()].find(({ d }) => d.identifier === address);
class Numbering {
  constructor() {
    const [prefix, prefixLabel] = field(T.prefix, { maxlength: 40, value: T.prefixDefault, input: () => this.update() });
    const [next, nextLabel] = field(T.nextNumber, { type: 'number', min: 0, max: 999, value: 1, input: () => this.update() });
    Object.assign(this, { prefix, next, given: new Map(), work: Promise.resolve(), status: h('p', { role: 'status' }), count: quiet(), done: h('ul.found'), rest: h('ul.found') });
    this.dialog = open(T.number, h('p', T.numberHelp), h('div.row', prefixLabel, nextLabel), this.count, this.status, this.done, h('details', h('summary', T.numberRest), this.rest),
      h('div.end', button(T.close, () => this.dialog.close(), { class: 'main' })));
    const wait = (time) => ask('number', { time }), timer = setInterval(() => wait(120), 60000);
    this.dialog.addEventListener('close', () => { numbering = null; clearInterval(timer); wait(0); });
    // What was numbered before counts no more.
    wait(0).then(() => numbering && wait(120));
    this.update();
  }

  get name() { return `${this.prefix.value.trim()} ${this.next.value}`.trim(); }

  // One after the other, so that no number is given twice.
  give(address) { this.work = this.work.then(() => this.giveNow(address)); }

  async giveNow(address) {
    const bit = deviceAt(address), known = this.given.get(address);
    if (!bit || numbering !== this) return;
    // The gateway may have forgotten that it has its number.
    if (known) { await ask('device/rename', { id: bit.id, name: known.name }); showNumber(bit.id, bit, known.n); return; }
    const n = Number(this.next.value), name = this.name, holder = [...devices.values()].find((other) => other !== bit && other.d.name === name && !this.given.has(other.d.identifier));
    // It was numbered in another lesson.
    if (holder) await ask('device/rename', { id: holder.id, name: short(holder.d.bluetooth_name) ?? holder.d.identifier });
    const { data, error } = await ask('device/rename', { id: bit.id, name });
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
      const input = h('input', { type: 'text', label: `${T.name}: ${name}`, value: name, maxlength: 64 });
      return h('li', form(() => this.correct(address, input.value.trim()), input, h('button', T.save)));
    };
    fill(this.done, [...this.given.keys()], () => [...this.given].reverse().map(entry));
    const bits = [...devices.values()].filter(({ d }) => !this.given.has(d.identifier) && d.session !== 'listening'), waiting = bits.filter(({ d, props }) => d.session === 'live' && props.get('button_a')?.d.available);
    text(this.count, t(T.numberOf, { given: this.given.size, all: bits.length + this.given.size, waiting: waiting.length }));
    const rest = bits.map((bit) => [bit.d.identifier, nameOf(bit)]).sort((a, b) => collate(a[1], b[1])), label = `${T.identify} → ${this.name}`;
    fill(this.rest, [rest, label], () => rest.map(([address, name]) => h('li', h('div.row', h('strong', name), button(label, () => this.give(address), { label: `${name}: ${label}` })))));
  }
}
// The number alone if the LEDs can show a text, else what Identify shows.
const showNumber = (id, bit, n) => (bit.props.get('led_text')?.d.writable ? ask('property/set', { id, property: 'led_text', value: String(n), ttl: 60 }) : ask('device/identify', { id }));
