// A lesson that is recorded: the strip while it goes on, and the recordings to download.
const fileOf = (name, layout) => `api/record/${encodeURIComponent(name)}.csv${layout}`;
const recordStrip = h('div.strip', { hidden: true }), recordText = h('span');
let recordTimer = 0, recorded = null;
const showRecording = () => {
  clearTimeout(recordTimer);
  const r = gateway.recording, before = recorded;
  recorded = r ?? null;
  showStrip(recordStrip, r);
  if (before && !r) recordEnded(before.name);
  if (!r) return;
  const seconds = max(0, floor((now() - Date.parse(r.started)) / 1000)), two = (n) => String(n).padStart(2, '0');
  text(recordText, t(T.recording, { name: r.name, time: `${floor(seconds / 3600)}:${two(floor(seconds / 60) % 60)}:${two(seconds % 60)}` }));
  recordTimer = setTimeout(showRecording, 1000);
};
// Says why, unless somebody has ended it.
const recordEnded = async (name) => {
  const found = gateway.read_only ? null : (await ask('record/list', {})).data?.find((r) => r.name === name);
  if (T.recordEnds[found?.end]) say(T.recordEnds[found.end], true);
};
const stopRecording = once(async () => { if (await act('record/stop', {})) recordDialog(); });
recordStrip.append(recordText, button(T.stop, stopRecording, { class: 'join', label: `${T.stop}: ${T.record}` }));
const recordDialog = once(async () => {
  const { data = [], error } = await ask('record/list', {}), [name, label] = field(T.name, { maxlength: 64, placeholder: T.optional });
  const start = once(async () => { if (await act('record/start', { name: name.value.trim() || undefined })) dialog.close(); });
  const entry = (r) => h('li', h('strong', r.name), quiet(joined(when(r.started), r.readings !== undefined && t(T.recordOf, { n: r.readings, size: number(ceil(r.bytes / 1024)) }),
    T.recordEnds[r.end], r.lost && `${T.spoolLost}: ${number(r.lost)}`)),
  h('div.row', [['', T.asRows], ['?layout=wide', T.asTable]].map(([layout, words]) => h('a.button', { href: fileOf(r.name, layout), download: `${r.name}.csv`, label: `${words}: ${r.name}` }, words)),
    r.ended && !gateway.read_only && button(T.remove, () => confirmDialog(t(T.removeTitle, { name: r.name }), T.recordGone, T.remove, async () => { if (await act('record/delete', { name: r.name }, t(T.removed, { name: r.name }))) { dialog.close(); recordDialog(); } }), { label: `${T.remove}: ${r.name}` })));
  const dialog = open(T.recordings, gateway.recording || gateway.read_only ? '' : [h('p', T.recordHelp), form(start, label, h('button.main', T.record))], error ? h('p.fault', error) : '',
    h('ul.found', data.map(entry)), h('div.end', button(T.close, () => dialog.close())));
});
