// What the overview has of a micro:bit where many fit on a screen; what can be done is on its own page.
class Compact extends View {
  build() {
    const { bit, hero } = this.begin(), link = linkTo(bit), word = h('span');
    this.add('', { update: () => { text(link, nameOf(bit)); this.showState(word); attr(this.el, 'title', (isFaulty(bit) && troubleOf(bit)) || null); } });
    swap(this.el, h('div.top', h('h2', link), this.mark),
      hero ? h('div.hero', this.add(hero.name, view(hero, bit)), h('p.quiet label', h('span', hero.d.title), this.age(hero))) : '',
      h('p.state', h('span.dot'), word));
    this.update(ALL);
  }
}

class Row extends View {
  build() {
    const { bit, hero } = this.begin(), link = linkTo(bit), word = h('span'), area = h('td'), signalCell = h('td');
    this.add('', { update: (_, { d }) => {
      text(link, nameOf(bit));
      text(area, d.area ?? '');
      text(signalCell, d.rssi === undefined || isOff(bit) || d.session === 'absent' ? '' : `${number(d.rssi)} dBm`);
      this.showState(word);
    } });
    swap(this.el, h('th', { scope: 'row' }, h('span.state', this.mark, link)),
      h('td.number', hero ? this.add(hero.name, view(hero, bit)) : ''), h('td', hero ? h('span.quiet', hero.d.title) : ''), h('td', hero ? this.age(hero) : ''),
      h('td', h('span.state', h('span.dot'), word)), area, signalCell);
    this.update(ALL);
  }
}

// The table's columns: their titles, and what they are sorted by.
const heroValue = (bit) => { const value = heroOf(bit)?.d.value; return typeof value === 'number' ? value : -Infinity; };
const COLUMNS = [
  ['name', T.name, nameOf], ['value', T.value, heroValue], ['what', T.what, (bit) => heroOf(bit)?.d.title ?? ''], ['age', T.age, (bit) => Date.parse(heroOf(bit)?.d.time ?? 0)],
  ['state', T.state, (bit) => Number(bit.d.online) * -2 + Number(!isFaulty(bit))], ['area', T.area, ({ d }) => d.area ?? ''], ['signal', T.signalTitle, ({ d }) => -(d.rssi ?? -200)],
];
class Table {
  constructor(onSort) {
    this.by = 'area';
    this.heads = COLUMNS.map(([key, label]) => h('th', { scope: 'col' }, button(label, () => { this.down = this.by === key && !this.down; this.by = key; this.mark(); onSort(); }, { class: 'plain' })));
    this.body = h('tbody');
    this.el = h('div.wide', { tabindex: 0, role: 'region', label: T.views.table }, h('table', h('thead', h('tr', this.heads)), this.body));
    this.mark();
  }

  mark() {
    COLUMNS.forEach(([key], i) => attr(this.heads[i], 'aria-sort', key === this.by && (this.down ? 'descending' : 'ascending')));
  }

  compare(a, b) {
    const [, , key] = COLUMNS.find(([name]) => name === this.by), x = key(a), y = key(b);
    return (typeof x === 'string' ? collate(x, y) : x - y) * (this.down ? -1 : 1);
  }
}
