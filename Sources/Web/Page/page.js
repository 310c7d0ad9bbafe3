const tiles = new Map(), page = {}, grid = h('ul.grid'), main = h('main', { tabindex: -1 }), title = h('h1'), empty = h('div.empty'), overview = h('div.overview'), count = quiet();
const collate = new Intl.Collator(locale, { numeric: true }).compare;
const table = new Table(() => arrange()), dense = h('ul.grid compact');
const LAYOUTS = { tiles: [grid, grid, (bit) => new Tile(bit, h('li.tile'))], compact: [dense, dense, (bit) => new Compact(bit, h('li.tile mini'))], table: [table.el, table.body, (bit) => new Row(bit, h('tr'))] };
// Full screen has its own way to fit all of them.
const layout = () => (isShow() ? 'tiles' : viewSelect.value in LAYOUTS && viewSelect.value || (devices.size > 8 ? 'compact' : 'tiles'));
const allLink = h('a', { href: '#' }, T.title), gatewayLink = h('a', { href: '#gateway' }), search = h('input', { type: 'search', label: T.find, placeholder: T.find, input: () => arrange() });
const viewSelect = h('select', { label: T.view, change: () => { kept('view', viewSelect.value); listChanged = true; draw(); } }, [['', `${T.view} …`], ...Object.entries(T.views)].map(option));
viewSelect.value = kept('view') in LAYOUTS ? kept('view') : '';
const areas = h('select', { label: T.area, change: () => arrange() });
const bar = h('div.bar', count, search, areas, viewSelect, button(T.record, recordDialog, { class: 'join' }), button(T.add, addDialog, { class: 'main' })), isShow = () => document.body.classList.contains('show');
const showButton = button(T.show, () => setShow(!isShow())), lost = h('span'), joining = h('span'), numbered = h('span');
const numberStrip = h('div.strip', { hidden: true }, numbered, button(T.stop, () => act('number', { time: 0 }), { class: 'join' }));
const lostStrip = h('div.strip bad', { hidden: true }, lost, button(T.retry, retry)), joinStrip = h('div.strip', { hidden: true }, joining, button(T.stop, () => act('permit_join', { time: 0 }), { class: 'join' })), readStrip = h('div.strip look', { hidden: true }, T.readOnly);
document.body.append(h('header', title, h('nav', { label: T.nav }, allLink, gatewayLink), languages, showButton), lostStrip, joinStrip, numberStrip, recordStrip, readStrip, main, toast, voice);

let arranged = '';
const arrange = () => {
  const [id] = [...tiles].find(([, { el }]) => el.contains(document.activeElement)) ?? [];
  keepFocus(tiles.get(id)?.el, place, () => tiles.get(id)?.el);
};
const place = () => {
  const name = layout(), [outer, list, make] = LAYOUTS[name];
  if (arranged !== name) {
    arranged = name;
    for (const { el } of tiles.values()) el.remove();
    tiles.clear();
    swap(overview, outer);
  }
  for (const [id, tile] of tiles) if (devices.get(id) !== tile.bit) { tile.el.remove(); tiles.delete(id); }
  const all = [...devices.values()], named = [...new Set(all.map(({ d }) => d.area ?? ''))].sort(collate);
  const was = areas.value || '*';
  // An area may have any name: in the list, = precedes it.
  fill(areas, named, () => [['*', T.allAreas], ...named.map((area) => [`=${area}`, area || T.noArea])].map(option));
  areas.value = named.some((area) => was === `=${area}`) ? was : '*';
  areas.hidden = named.length < 2;
  const key = (bit) => `${bit.d.area ?? ''}\n${nameOf(bit)}\n${bit.id}`, wanted = search.value.trim().toLowerCase(), area = areas.hidden ? '*' : areas.value;
  let next = list.firstChild, visible = 0;
  for (const bit of all.sort((a, b) => name === 'table' && table.compare(a, b) || collate(key(a), key(b)))) {
    if (!tiles.has(bit.id)) tiles.set(bit.id, make(bit));
    const { el } = tiles.get(bit.id);
    if (el === next) next = next.nextSibling;
    else list.insertBefore(el, next);
    el.hidden = !key(bit).toLowerCase().includes(wanted) || area !== '*' && area !== `=${bit.d.area ?? ''}`;
    if (!el.hidden) visible += 1;
  }
  search.hidden = devices.size < 9 && !search.value;
  viewSelect.hidden = devices.size < 2;
  fill(empty, began ? devices.size : -1, () => (began && devices.size ? [h('p', T.noMatch)] : began ? [h('p', T.none), h('p.quiet', T.makecode), !gateway.read_only && h('p', joinButton())].filter(Boolean) : [T.loading]));
  empty.hidden = visible > 0;
  outer.hidden = !empty.hidden;
  const size = (columns) => min(innerWidth / columns, innerHeight / ceil(visible / columns) * 1.5);
  let best = 1;
  for (let columns = 2; columns <= visible; columns++) if (size(columns) > size(best)) best = columns;
  grid.style.setProperty('--columns', best);
};
const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ''; } };
const go = () => {
  const hash = decoded(location.hash.slice(1)), id = hash.startsWith('m/') && hash.slice(2), bit = devices.get(id), kind = id ? 'device' : hash === 'gateway' ? hash : 'all';
  attr(allLink, 'aria-current', kind === 'all' && 'page');
  attr(gatewayLink, 'aria-current', kind === 'gateway' && 'page');
  if (page.kind === kind && page.bit === bit && page.id === id && page.told === began) return;
  const moved = page.kind && page.told;
  Object.assign(page, { kind, bit, id, told: began, view: null });
  charts = [];
  if (kind === 'all') { for (const tile of tiles.values()) tile.update(ALL); swap(main, bar, empty, overview); }
  else if (kind === 'gateway') swap(main, (page.view = new GatewayPage()).el);
  else if (bit) swap(main, (page.view = new Detail(bit, h('div.detail'))).el);
  else swap(main, h('a', { href: '#' }, T.back), h('p', began ? t(T.gone, { id }) : T.loading));
  if (moved) { scrollTo(0, 0); (main.querySelector('h2[tabindex]') ?? main).focus({ preventScroll: true }); }
};
function render() {
  frame = 0;
  if (listChanged) { listChanged = false; gatewayChanged = true; arrange(); for (const chart of charts) chart.compare(false); }
  go();
  for (const [id, names] of dirty) {
    if (page.kind === 'all') tiles.get(id)?.update(names);
    else if (page.bit?.id === id) page.view.update(names);
    if (names.has('')) gatewayChanged = true;
  }
  dirty.clear();
  if (gatewayChanged) {
    numbering?.update();
    gatewayChanged = false;
    text(title, gateway.area ?? gateway.id ?? T.title);
    document.title = `${title.shown} – ${T.title}`;
    const faults = gateway.findings?.length;
    fill(gatewayLink, faults ?? 0, () => [T.gateway, ...(faults ? [' ', h('span.badge', { 'aria-hidden': 'true' }, number(faults)), h('span.unseen', t(T.problems, { n: faults }))] : [])]);
    text(count, t(T.online, { on: [...devices.values()].filter(({ d }) => d.online).length, n: devices.size }));
    if (page.kind === 'gateway') page.view.update();
    countDown();
    showRecording();
    showStrip(numberStrip, gateway.numbering && numbering === null);
    if (!numberStrip.hidden) text(numbered, progress(gateway.numbering));
    readStrip.hidden = !flag(document.body, 'reading', gateway.read_only);
  }
  showStrip(lostStrip, !connected && (began || problem));
  flag(document.body, 'lost', !lostStrip.hidden);
  if (!lostStrip.hidden) text(lost, joined(T.lost, problem, seen && t(T.since, { time: at(seen) })));
}
let joins = 0;
const countDown = () => {
  clearTimeout(joins);
  const left = gateway.permit_join ? ceil((Date.parse(gateway.permit_join_end) - now()) / 1000) : 0;
  showStrip(joinStrip, left > 0);
  if (joinStrip.hidden) return;
  text(joining, t(T.joining, { time: `${floor(left / 60)}:${String(left % 60).padStart(2, '0')}` }));
  joins = setTimeout(countDown, 1000);
};
const setShow = (on) => {
  flag(document.body, 'show', on);
  listChanged = true;
  draw();
  text(showButton, on ? T.hide : T.show);
  if (on) document.documentElement.requestFullscreen?.().catch(() => {});
  else if (document.fullscreenElement) document.exitFullscreen();
};
addEventListener('fullscreenchange', () => { if (!document.fullscreenElement && isShow()) setShow(false); }, true);
addEventListener('keydown', (event) => { if (event.key === 'Escape' && isShow()) setShow(false); });
addEventListener('hashchange', draw);
addEventListener('resize', () => { listChanged = true; draw(); });
// Values that do not come any more grow old, and a table that is sorted by them is sorted anew.
setInterval(() => { if (page.kind === 'all' && layout() === 'table') arrange(); for (const chart of charts) chart.update(); for (const view of page.kind === 'all' ? tiles.values() : page.view?.showAges ? [page.view] : []) view.showAges(); }, 5000);
draw();
follow();
