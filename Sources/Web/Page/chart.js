const parseCSV = (csv) => csv.split('\n').filter(Boolean).map((line) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,\r]*))/g)].map(([, quoted, plain]) => (quoted ?? plain).replaceAll('""', '"')));
let charts = [];
const historyOf = (bit) => `api/history/${encodeURIComponent(bit.id)}.csv`;
// The rows of a micro:bit's history, its titles first; none, if there is no answer: what arrives is drawn all the same.
const rowsOf = async (bit) => {
  try {
    const answer = await fetch(historyOf(bit), { cache: 'no-store' });
    return answer.ok ? parseCSV(await answer.text()) : [];
  } catch { return []; }
};
const loadCharts = async () => {
  if (!charts.length) return;
  const all = charts, rows = await rowsOf(page.bit);
  // Another page is shown meanwhile.
  if (all !== charts) return;
  for (const chart of all) { chart.load(chart.lines.filter((line) => line.p === chart.p), rows); chart.compare(); }
};
const HOUR = 3600000, SPANS = [1 / 60, 1 / 6, 1, 6, 24];
const inWords = (hours) => (hours < 1 ? span('minute', Math.round(hours * 60)) : span('hour', hours));
// How long a time the charts show; '': as long as there are values.
const zoomSelect = () => {
  const el = h('select.set', { label: T.zoom, change: () => { kept('zoom', el.value); for (const chart of charts) chart.draw(); } }, [['', `${T.zoom} …`], ...SPANS.map((hours) => [hours, inWords(hours)])].map(option));
  el.value = kept('zoom') ?? '';
  return el;
};
class Chart {
  constructor(p) {
    this.p = p;
    this.lines = (p.d.type === 'record' ? p.d.fields.slice(0, 3) : ['']).map((field) => ({ p, field, name: field, points: [] }));
    const move = (event) => {
      const last = this.times.length - 1, step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.move(max(0, min(last, (this.cursor ?? last) + step)));
    };
    this.svg = svg('svg', { role: 'slider', tabindex: 0, label: t(T.chart, { title: p.d.title }), 'aria-valuemin': 0, keydown: move,
      blur: () => this.move(), pointerleave: () => this.move(), pointermove: (event) => this.point(event.offsetX) });
    this.readout = h('figcaption.quiet');
    this.el = h('figure.plot', this.svg, this.readout, isNumber(p) && (this.all = button(T.compare, () => { kept(`all ${p.name}`, kept(`all ${p.name}`) === '1' ? '0' : '1'); this.compare(); }, { class: 'set' })));
    this.drawn = this.times = [];
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  // The same number of other micro:bits.
  others() {
    const { p } = this;
    return isNumber(p) ? [...devices.values()].filter((bit) => bit.props.get(p.name) !== p && bit.props.has(p.name)).map((bit) => ({ bit, p: bit.props.get(p.name), field: '', name: nameOf(bit), points: [] })) : [];
  }

  // Shows them too, if that is chosen; anew if there are others, or names have changed.
  async compare(anew = true) {
    if (!this.all) return;
    const own = this.lines.filter((line) => line.p === this.p), others = this.others(), on = others.length > 0 && kept(`all ${this.p.name}`) === '1';
    const names = JSON.stringify([nameOf(page.bit), others.map(({ bit, name }) => [bit.id, name])]), isSame = this.names === names;
    this.names = names;
    if (!anew && isSame) return;
    this.all.hidden = !others.length;
    attr(this.all, 'aria-pressed', String(on));
    own[0].name = on ? nameOf(page.bit) : '';
    this.lines = on ? [...own, ...others] : own;
    this.draw();
    for (const line of this.lines.slice(own.length)) this.load([line], await rowsOf(line.bit));
  }

  load(lines, [names, ...rows]) {
    for (const line of names ? lines : []) {
      const wanted = this.p.name + (line.field && `.${line.field}`), column = names.findIndex((name) => name === wanted || name.startsWith(`${wanted} (`));
      line.points = rows.filter((row) => row[column]).map((row) => [Date.parse(row[0]), row[column] === 'true' ? 1 : Number(row[column]) || 0]);
    }
    this.draw();
  }

  // Takes the newest value; of those before, one for each minute remains.
  update() {
    for (const { p, field, points } of this.lines) {
      const { value, time } = p.d, t = Date.parse(time);
      const v = Number((field ? value?.[field] : value) ?? NaN);
      if (Number.isNaN(v + t) || points.at(-1)?.[0] >= t) continue;
      if (floor(points.at(-2)?.[0] / 60000) === floor(t / 60000)) points.pop();
      points.push([t, v]);
      while (points[0][0] < t - 24 * HOUR) points.shift();
    }
    if (!(performance.now() - this.drawn < 900)) this.draw();
  }

  draw() {
    const width = this.svg.clientWidth, height = this.svg.clientHeight, size = parseFloat(getComputedStyle(this.svg).fontSize), end = now();
    if (!width) return;
    this.drawn = performance.now();
    const first = this.lines.reduce((t, { points }) => min(t, points[0]?.[0] ?? t), end), hours = Number(kept('zoom')) || (SPANS.slice(1).find((n) => first > end - n * HOUR) ?? 24), begin = end - hours * HOUR;
    this.shown = this.lines.map(({ p, field, name, points }) => {
      // Of the newest values those without a gap: the history has what came while nobody saw the page.
      const spark = p.spark.slice(max(0, p.spark.findLastIndex(([t], i) => i && t - p.spark[i - 1][0] > 60000)));
      const recent = field ? [] : spark.filter(([t]) => t >= begin), from = spark[0]?.[0] ?? end;
      return { field, name, points: [...points.filter(([t]) => t >= begin && t < from), ...recent] };
    });
    const all = this.shown.flatMap(({ points }) => points);
    this.times = [...new Set(all.map(([t]) => t))].sort((a, b) => a - b);
    if (!all.length) { swap(this.svg); text(this.readout, ageOf(page.bit, this.p) || T.noHistory); return; }
    // More values than a function may have arguments.
    let [low, high] = all.reduce(([low, high], [, v]) => [min(low, near(v)), max(high, near(v))], [Infinity, -Infinity]);
    this.extent = t(T.extent, { low: full(low, this.p.d), high: full(high, this.p.d), time: inWords(hours) });
    const least = max(1e-300, -low * 1e-13, high * 1e-13), wide = max(1, least);
    if (high - low <= least) { low -= wide; high += wide; }
    const power = 10 ** floor(Math.log10(high - low)), step = max(this.p.d.type === 'integer', power * [.2, .5, 1, 2].find((n) => (high - low) / power / n <= 5));
    const narrow = this.lines.every(({ name }) => name.length < 2), left = size * 3.6, right = width - size, top = size * 1.4, bottom = height - size * 1.8;
    low = floor(low / step) * step;
    high = ceil(high / step) * step;
    const x = this.x = (t) => left + (t - begin) / (end - begin) * (right - left), y = (v) => bottom - (near(v) - low) / (high - low) * (bottom - top), parts = [];
    const label = (x, y, value, props) => parts.push(svg('text', { x, y, ...props }, value));
    for (let i = 0, v; (v = low + i * step) <= high + step / 2 && i < 9; i++) {
      parts.push(svg('line', { x1: left, x2: right, y1: y(v), y2: y(v) }));
      label(left - 6, y(v) + size * .35, number(v), { 'text-anchor': 'end' });
    }
    const clock = hours < .1 ? second : minute, each = HOUR * [1 / 240, 1 / 30, 1 / 12, 1 / 6, .25, .5, 1, 2, 3, 6, 12].find((n) => hours / n * size * 4.5 < right - left || n === 12), zone = new Date(end).getTimezoneOffset() * 60000;
    for (let t = ceil((begin - zone) / each) * each + zone; t < end && x(t) < right - size; t += each) label(x(t), height - size * .3, clock(t), { 'text-anchor': 'middle' });
    // A minute without a value is a gap, or more where the history is coarser.
    const spaces = this.lines[0].points.map(([t], i, all) => t - all[i - 1]?.[0]).filter((space) => space >= 59000), rest = 2.5 * min(360000, max(60000, min(...spaces)));
    this.rest = rest;
    this.shown.forEach(({ name, points }, i) => {
      let last = 0;
      // A point alone is a short line.
      const d = points.map(([t, v, broken], n) => { const gap = broken || t - last > rest; last = t; return `${!gap ? 'L' : n ? 'h2M' : 'M'}${x(t).toFixed(1)} ${y(v).toFixed(1)}`; }).join('');
      parts.push(svg('path', { d: d && `${d}h2`, class: `s${i}` }));
      const hue = () => { if (i > 2) parts.at(-1).style.setProperty('--hue', `hsl(${i * 137} 60% 50%)`); };
      hue();
      if (!name || !points.length) return;
      label(right + (narrow ? 3 : 0), y(points.at(-1)[1]) + size * .35 * (narrow ? 1 : -1), name, { class: `s${i}`, 'text-anchor': narrow ? 'start' : 'end' });
      hue();
    });
    this.line = svg('line.cursor', { y1: top, y2: bottom });
    swap(this.svg, ...parts, this.line);
    this.move(this.cursor);
  }

  point(px) {
    const far = (t) => abs(this.x(t) - px);
    if (this.times.length) this.move(this.times.reduce((best, t, i) => (far(t) < far(this.times[best]) ? i : best), 0));
  }

  // Shows the values at a time, or all of them in short.
  move(index) {
    const last = this.times.length - 1, t = this.times[index ?? last];
    this.cursor = index;
    if (t === undefined) return;
    const values = this.shown.map(({ name, points }) => [name, points.findLast((point) => point[0] <= t && t - point[0] < this.rest)]).filter(([, point]) => point);
    text(this.readout, index === undefined ? this.extent : `${minute(t)}: ${values.map(([name, point]) => `${name} ${full(point[1], this.p.d)}`.trim()).join(' · ')}`);
    for (const end of ['x1', 'x2']) attr(this.line, end, index === undefined ? -9 : this.x(t));
    attr(this.svg, 'aria-valuemax', last);
    attr(this.svg, 'aria-valuenow', index ?? last);
    attr(this.svg, 'aria-valuetext', this.readout.shown);
  }
}
