const parseCSV = (csv) => csv.split('\n').filter(Boolean).map((line) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,\r]*))/g)].map(([, quoted, plain]) => (quoted ?? plain).replaceAll('""', '"')));
let charts = [];
const historyOf = (bit) => `api/history/${encodeURIComponent(bit.id)}.csv`;
const loadCharts = async () => {
  if (!charts.length) return;
  const all = charts;
  try {
    const answer = await fetch(historyOf(page.bit), { cache: 'no-store' }), [names = [], ...rows] = answer.ok ? parseCSV(await answer.text()) : [];
    for (const chart of all) chart.load(names, rows);
  } catch { /* what arrives is drawn all the same */ }
};
const HOUR = 3600000;
class Chart {
  constructor(p) {
    this.p = p;
    this.lines = (p.d.type === 'record' ? p.d.fields.slice(0, 3) : ['']).map((field) => ({ field, points: [] }));
    const move = (event) => {
      const last = this.times.length - 1, step = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      this.move(max(0, min(last, (this.cursor ?? last) + step)));
    };
    this.svg = svg('svg', { role: 'slider', tabindex: 0, label: t(T.chart, { title: p.d.title }), 'aria-valuemin': 0, keydown: move,
      blur: () => this.move(), pointerleave: () => this.move(), pointermove: (event) => this.point(event.offsetX) });
    this.readout = h('figcaption.quiet');
    this.el = h('figure.plot', this.svg, this.readout);
    this.drawn = this.times = [];
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  load(names, rows) {
    for (const line of this.lines) {
      const wanted = this.p.name + (line.field && `.${line.field}`), column = names.findIndex((name) => name === wanted || name.startsWith(`${wanted} (`));
      line.points = rows.filter((row) => row[column]).map((row) => [Date.parse(row[0]), row[column] === 'true' ? 1 : Number(row[column]) || 0]);
    }
    this.draw();
  }

  // Takes the newest value; of those before, one for each minute remains.
  update() {
    const { value, time } = this.p.d, t = Date.parse(time);
    for (const { field, points } of this.lines) {
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
    const first = this.lines.reduce((t, { points }) => min(t, points[0]?.[0] ?? t), end), hours = [1 / 6, 1, 6, 24].find((n) => first > end - n * HOUR) ?? 24, begin = end - hours * HOUR;
    this.shown = this.lines.map(({ field, points }) => {
      const recent = field ? [] : this.p.spark, from = recent[0]?.[0] ?? end;
      return { field, points: [...points.filter(([t]) => t >= begin && t < from), ...recent] };
    });
    const all = this.shown.flatMap(({ points }) => points), values = all.map(([, v]) => near(v));
    this.times = [...new Set(all.map(([t]) => t))].sort((a, b) => a - b);
    if (!all.length) { swap(this.svg); text(this.readout, T.noHistory); return; }
    let low = min(...values), high = max(...values);
    this.extent = t(T.extent, { low: full(low, this.p.d), high: full(high, this.p.d), time: hours < 1 ? span('minute', 10) : span('hour', hours) });
    const least = max(1e-300, -low * 1e-13, high * 1e-13), wide = max(1, least);
    if (high - low <= least) { low -= wide; high += wide; }
    const power = 10 ** floor(Math.log10(high - low)), step = max(this.p.d.type === 'integer', power * [.2, .5, 1, 2].find((n) => (high - low) / power / n <= 5));
    const left = size * 3.6, right = width - size, top = size, bottom = height - size * 1.8;
    low = floor(low / step) * step;
    high = ceil(high / step) * step;
    const x = this.x = (t) => left + (t - begin) / (end - begin) * (right - left), y = (v) => bottom - (near(v) - low) / (high - low) * (bottom - top), parts = [];
    const label = (x, y, value, props) => parts.push(svg('text', { x, y, ...props }, value));
    for (let i = 0, v; (v = low + i * step) <= high + step / 2 && i < 9; i++) {
      parts.push(svg('line', { x1: left, x2: right, y1: y(v), y2: y(v) }));
      label(left - 6, y(v) + size * .35, number(v), { 'text-anchor': 'end' });
    }
    const each = HOUR * [1 / 30, 1 / 12, 1 / 6, .25, .5, 1, 2, 3, 6, 12].find((n) => hours / n * size * 4.5 < right - left || n === 12), zone = new Date(end).getTimezoneOffset() * 60000;
    for (let t = ceil((begin - zone) / each) * each + zone; t < end && x(t) < right - size; t += each) label(x(t), height - size * .3, minute(t), { 'text-anchor': 'middle' });
    // A minute without a value is a gap, or more where the history is coarser.
    const spaces = this.lines[0].points.map(([t], i, all) => t - all[i - 1]?.[0]).filter((space) => space >= 59000), rest = 2.5 * min(360000, max(60000, min(...spaces)));
    this.shown.forEach(({ field, points }, i) => {
      let last = 0;
      const d = points.map(([t, v, broken]) => { const gap = broken || t - last > rest; last = t; return `${gap ? 'M' : 'L'}${x(t).toFixed(1)} ${y(v).toFixed(1)}`; }).join('');
      parts.push(svg('path', { d: d && `${d}h2`, class: `s${i}` }));
      if (field && points.length) label(right + 3, y(points.at(-1)[1]) + size * .35, field, { class: `s${i}` });
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
    const values = this.shown.map(({ field, points }) => [field, points.find((point) => point[0] === t)]).filter(([, point]) => point);
    text(this.readout, index === undefined ? this.extent : `${minute(t)}: ${values.map(([field, point]) => `${field} ${full(point[1], this.p.d)}`.trim()).join(' · ')}`);
    for (const end of ['x1', 'x2']) attr(this.line, end, index === undefined ? -9 : this.x(t));
    attr(this.svg, 'aria-valuemax', last);
    attr(this.svg, 'aria-valuenow', index ?? last);
    attr(this.svg, 'aria-valuetext', this.readout.shown);
  }
}
