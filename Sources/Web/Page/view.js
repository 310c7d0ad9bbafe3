// A tile and a page of a device: `parts` are [name of a property or '', { update }].
class View {
  constructor(bit, el) {
    Object.assign(this, { bit, el });
    this.build();
  }

  begin() {
    const { bit } = this;
    Object.assign(this, { shape: bit.shape, hero: heroOf(bit), parts: [], ages: [], mark: h('span.mark') });
    this.names = propsOf(bit).filter((p) => p.d.notifies).map((p) => p.name);
    return this;
  }

  add(name, part) {
    this.parts.push([name, part]);
    return part.el;
  }

  // How old the value is, unless it is live.
  age(p) {
    const el = h('span.age');
    this.ages.push([el, p.name]);
    return el;
  }

  showAges() {
    for (const [el, name] of this.ages) {
      const p = this.bit.props.get(name);
      if (p) text(el, ageOf(this.bit, p));
    }
  }

  update(names) {
    const { bit } = this;
    if (bit.shape !== this.shape || heroOf(bit)?.name !== this.hero?.name) return keepFocus(this.el, () => this.build());
    // What can be done with a value depends on the connection too.
    for (const [name, part] of this.parts) if (names.has(name) || names.has('')) part.update(bit.props.get(name), bit);
    this.showAges();
    this.blink();
  }

  // The mark blinks once for all that has arrived, at most three times a second.
  blink() {
    const count = this.names.reduce((sum, name) => sum + (this.bit.props.get(name)?.d.count ?? 0), 0), time = performance.now();
    const arrived = count > this.count;
    this.count = count;
    if (this.total) text(this.total, count);
    if (!arrived || time - this.lit < (still.matches ? 1000 : 300)) return;
    this.lit = time;
    this.mark.classList.toggle('lit', !still.matches || undefined);
    if (!still.matches) setTimeout(() => this.mark.classList.remove('lit'), 150);
  }

  showState(word) {
    const { bit } = this, { online, session } = bit.d;
    text(word, stateOf(bit));
    for (const [name, on] of [['off', !online], ['live', online && !bit.d.turn], ['busy', !bit.d.turn && ['connecting', 'subscribing', 'leaving'].includes(session)], ['bad', isFaulty(bit)]]) flag(this.el, name, on);
  }

  top(title, heading = title) {
    const area = quiet(), word = h('span'), bars = h('span.signal', { role: 'img' }, [1, 2, 3, 4].map(() => h('i')));
    const { bit } = this, id = bit.id;
    const main = button('', () => act('device/options', { id, options: { enabled: bit.d.session === 'disabled' } }));
    const identify = button(T.identify, () => act('device/identify', { id }, t(T.identified, { name: nameOf(bit) })));
    const pair = button('', () => (pair.shown === T.pair ? pairDialog(bit) : confirmDialog(t(T.unpairTitle, { name: nameOf(bit) }), T.unpairHelp, T.unpair, () => act('device/unpair', { id }))));
    const note = h('p.note fault');
    this.add('', { update: (_, { d }) => {
      text(title, nameOf(bit));
      text(area, joined(d.area, d.paired && T.paired));
      this.showState(word);
      bars.hidden = d.rssi === undefined || isOff(bit) || d.session === 'absent';
      attr(bars, 'aria-label', signal(d.rssi));
      [...bars.children].forEach((bar, i) => flag(bar, 'on', i <= strength(d.rssi)));
      text(main, { disabled: T.connect, leaving: T.leaving, live: T.disconnect, idle: T.disconnect }[d.session] ?? T.cancel);
      text(note, d.wants_pairing ? T.wantsPairing : d.online || isOff(bit) || d.session === 'absent' ? '' : troubleOf(bit) ?? '');
      text(pair, d.paired && !d.wants_pairing ? T.unpair : T.pair);
      flag(pair, 'main', d.wants_pairing);
      main.hidden = identify.hidden = d.session === 'listening';
      pair.hidden = main.hidden || heading !== title && !d.wants_pairing;
      for (const b of [main, identify, pair]) attr(b, 'aria-label', `${b.textContent}: ${nameOf(bit)}`);
      flag(main, 'main', d.session === 'disabled');
      main.disabled = ['leaving', 'stopped'].includes(d.session);
      identify.disabled = !d.online;
    } });
    return { head: h('div.top', h('div', heading, area), this.mark), state: h('p.state', h('span.dot'), word, bars), note,
      actions: h('div.row actions', main, identify, pair) };
  }
}
const linkTo = (bit) => h('a', { href: `#m/${encodeURIComponent(bit.id)}` });
const strength = (dBm) => (dBm >= -60 ? 3 : dBm >= -72 ? 2 : dBm >= -84 ? 1 : 0);
const signal = (dBm) => t(T.signal, { dBm: number(dBm), word: T.strength[strength(dBm)] });
// The value that is shown large: the one chosen here, else one that the program has named, else a number that arrives.
const heroOf = (bit) => {
  const all = propsOf(bit).filter((p) => !isSetting(p)), numbers = all.filter(isNumber);
  return bit.props.get(chosen(bit.id)) ?? numbers.find((p) => p.d.named && hasValue(p)) ?? numbers.find((p) => p.d.notifies) ?? numbers[0] ?? all[0];
};
const drawSpark = (path, p) => {
  const end = now(), points = p.spark.filter(([t]) => t > end - SPARK), values = points.map(([, v]) => near(v)), low = min(...values), span = max(...values) - low;
  const width = max(30000, end - points[0]?.[0]);
  attr(path, 'd', points.length > 0 && `${points.map(([t, v, broken], i) => `${!i || broken || t - points[i - 1][0] > 60000 ? 'M' : 'L'}${(100 - (end - t) / width * 100).toFixed(2)} ${(span ? 28 - (near(v) - low) / span * 26 : 15).toFixed(1)}h0`).join('')}${p.broken ? '' : 'H100'}`);
};
const ALL = new Set(['']);
