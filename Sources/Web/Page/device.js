class Detail extends View {
  build() {
    const { bit, hero } = this.begin(), id = bit.id, all = propsOf(bit);
    charts = [];
    const { head, state, note, actions } = this.top(h('h2', { tabindex: -1 })), missing = [];
    this.add('', { update: (_, { d }) => {
      for (const [el, p] of missing) el.hidden = !d.online || bit.props.get(p.name).d.available !== false;
    } });
    const rank = (p) => (isNumber(p) && !isSetting(p) ? 0 : isSetting(p) ? 3 : isEvent(p) ? 2 : 1);
    const value = (p) => {
      const { d } = p, shown = view(p, bit), lacks = quiet(T.missing), kids = [];
      missing.push([lacks, p]);
      if (d.readable || d.notifies) kids.push(h('div.reading', this.add(p.name, shown), this.age(p)));
      if (d.writable) kids.push(shown.tools, this.add(p.name, shown.tools ? writeNote() : choices(p) ? chooser(p, bit) : editor(p, bit)));
      if (!isEvent(p) && !isSetting(p) && (isNumber(p) || ['record', 'boolean'].includes(d.type))) {
        const chart = new Chart(p);
        charts.push(chart);
        kids.push(this.add(p.name, chart));
      }
      if (isEvent(p) && d.notifies) kids.push(this.log(p));
      if (isNumber(p) && (!d.writable || d.named) && !gateway.read_only) kids.push(this.offset(p));
      return card(d.title, ...kids, lacks);
    };
    swap(this.el, h('div.head', h('a.back', { href: '#' }, T.back), head, state, actions, zoomSelect(), h('a.button set', { href: historyOf(bit), download: `${id}.csv` }, T.csv), gateway.read_only ? '' : this.dataLog(), note),
      hero ? value(hero) : '', h('div.cards', all.filter((p) => p !== hero).sort((a, b) => rank(a) - rank(b)).map(value), gateway.read_only ? '' : this.settings(), this.more()));
    this.update(ALL);
    loadCharts();
  }

  log(p) {
    const list = h('ul.log', { label: `${T.events}: ${p.d.title}`, tabindex: 0 });
    return this.add(p.name, { el: list, update: (p) => fill(list, [p.log, today()], () => p.log.map(({ value, time }) => h('li', h('time', at(time)), show(value, p.d)))) });
  }

  // Reads the data log of a V2, and saves it.
  dataLog() {
    const { id } = this.bit, read = button(T.dataLog, async () => {
      read.disabled = true;
      say(T.readingLog);
      const data = await act('device/log', { id });
      read.disabled = false;
      if (!data) return;
      const url = URL.createObjectURL(new Blob([data.csv], { type: 'text/csv' }));
      h('a', { href: url, download: `${id}-log.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    });
    return this.add('', { el: read, update: (_, { d }) => { read.hidden = !d.has_log; } });
  }

  offset(p) {
    const [input, label] = field(T.offset, { type: 'number', step: 'any', required: true }), from = quiet(T.configured), { id } = this.bit, [, key] = p.name.split('/');
    this.add(p.name, { update: ({ d }) => { keep(input, String(d.offset ?? 0)); from.hidden = !d.offset_configured; } });
    return h('details.set', h('summary', T.correct), form(() =>
      act('device/options', { id, options: { [key ? 'values' : 'adjust']: { [key ?? p.name]: { offset: Number(input.value) } } } }, T.saved), label, h('button', T.set)), from);
  }

  settings() {
    const { bit } = this, all = ['name', 'area', 'id'].map((key) => [key, ...field(T[key], { name: key, required: key === 'id' })]);
    this.add('', { update: (_, { d }) => { for (const [key, input] of all) keep(input, d[key] ?? ''); } });
    const save = once(async () => {
      const changed = all.filter(([, input]) => input.value !== input.defaultValue), options = Object.fromEntries(changed.map(([key, input]) => [key, input.value.trim() || null])), { id: to, name } = options;
      delete options.id;
      // A name has the id that follows from it, unless another one is given.
      const named = name && !to ? await ask('device/rename', { id: bit.id, name }) : null;
      if (named) delete options.name;
      if (named?.error) { say(named.error, true); return; }
      let id = named?.data.to ?? bit.id;
      const isSet = !Object.keys(options).length || await act('device/options', { id, options }, T.saved);
      if (named && isSet) say(T.saved);
      if (isSet && to && await act('device/rename', { id, to }, T.saved)) id = to;
      if (id !== bit.id) location.hash = `#m/${encodeURIComponent(id)}`;
    });
    const [log, logLabel] = field(T.publishLog, { type: 'checkbox' });
    log.addEventListener('change', () => act('device/options', { id: bit.id, options: { log: log.checked } }, T.saved));
    this.add('', { update: (_, { d }) => { logLabel.hidden = !d.has_log && !d.publishes_log; log.checked = !!d.publishes_log; } });
    return card(T.settings, logLabel, form(save, all.map(([, , label]) => label), h('button', T.save)), h('div', button(T.remove, () => {
      const name = nameOf(bit);
      confirmDialog(t(T.removeTitle, { name }), T.removeHelp, T.remove, async () => { if (await act('device/remove', { id: bit.id }, t(T.removed, { name }))) location.hash = '#'; });
    })));
  }

  more() {
    const list = h('dl');
    this.add('', { update: (_, { d }) => fill(list, d, () => pairs([[T.address, d.identifier], [T.bluetoothName, d.bluetooth_name], [T.profile, d.profile], [T.adapter, d.adapter],
      d.online ? [T.connectedSince, when(d.connected_since)] : [T.lastConnected, when(d.last_connected)]])) });
    return card(T.details, list, h('dl', h('dt', T.readings), this.total = h('dd')));
  }
}
// A field that follows its value, unless somebody has changed it.
const keep = (input, value) => {
  if (input.value === input.defaultValue) input.value = value;
  input.defaultValue = value;
};
const pairs = (all) => all.filter(([, value]) => value || value === 0).flatMap(([key, value]) => [h('dt', key), h('dd', String(value))]);
