class Tile extends View {
  build() {
    const { bit, hero } = this.begin(), kids = [], link = linkTo(bit);
    const { head, state, note, actions } = this.top(link, h('h2', link)), period = bit.props.get('period');
    if (hero) kids.push(h('div.hero', h('p.quiet label', h('span', hero.d.title), this.age(hero)), this.add(hero.name, view(hero, bit))));
    if (hero && isNumber(hero)) {
      const path = svg('path');
      let drawn = -1000;
      kids.push(svg('svg.spark', { viewBox: '0 0 100 30', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, path));
      this.add(hero.name, { update: (p) => { if (performance.now() - drawn > 900) { drawn = performance.now(); drawSpark(path, p); } } });
    }
    const named = propsOf(bit).some((p) => p.d.named), others = propsOf(bit).filter((p) => p !== hero && !(named && ['uart_rx', 'radio_rx'].includes(p.name)) && !isSetting(p) && p.d.type !== 'flags' && (p.d.readable || p.d.notifies)).slice(0, 8);
    kids.push(h('ul.others', others.map((p) => h('li', isNumber(p)
      ? button(p.d.title, () => { chosen(bit.id, p.name); this.build(); this.el.querySelector('a').focus(); }, { class: 'plain quiet', label: t(T.large, { title: p.d.title }) }) : h('span.quiet', p.d.title),
    h('span.reading', this.age(p), this.add(p.name, view(p, bit)))))));
    swap(this.el, head, ...kids, h('div.foot', period?.d.writable && choices(period) && h('div', h('p.quiet', { 'aria-hidden': 'true' }, T.period), this.add('period', chooser(period, bit))), state, note, actions));
    this.update(ALL);
  }
}
