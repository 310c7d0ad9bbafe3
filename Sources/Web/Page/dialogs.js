const open = (title, ...kids) => {
  const dialog = h('dialog', { label: title, close: () => {
    dialog.remove();
    for (const el of [toast, voice]) toFront(el);
    // What had opened it may be gone.
    if (document.activeElement === document.body) main.focus({ preventScroll: true });
  } }, h('div', h('h2', title), ...kids));
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
};
// Shows or hides a strip. The focus must not go with the button that ended what the strip tells.
const showStrip = (strip, isShown) => {
  const had = strip.contains(document.activeElement);
  strip.hidden = !isShown;
  if (had && !isShown) main.focus({ preventScroll: true });
};
const confirmDialog = (title, help, label, go) => {
  const dialog = open(title, h('p', help), h('div.end', button(T.cancel, () => dialog.close()), button(label, () => { dialog.close(); go(); }, { class: 'main' })));
};
const pairDialog = async (bit) => {
  const { id } = bit, done = (data) => { if (data?.paired) say(t(T.isPaired, { name: nameOf(bit) })); };
  say(`${T.pair} …`, true);
  const data = await act('device/pair', { id });
  done(data);
  if (!data?.passkey_required) return;
  swap(toast);
  const [input, label] = field(T.passkey, { inputmode: 'numeric', pattern: '[0-9]{1,6}', maxlength: 6, required: true });
  const dialog = open(`${T.pair}: ${nameOf(bit)}`, h('p', T.passkeyHelp), form(async () => {
    dialog.close();
    done(await act('device/pair', { id, passkey: Number(input.value) }));
  }, label, h('button.main', T.pair), button(T.cancel, () => dialog.close())));
};
const joinButton = () => button(T.join, () => act('permit_join', { time: 240 }), { class: 'join' });
const addDialog = () => {
  const status = h('p', { role: 'status' }), list = h('ul.found'), old = h('div');
  const entry = (found) => {
    const title = short(found.name) ?? found.identifier, place = h('div'), [name, nameLabel] = field(T.name), [area, areaLabel] = field(T.area);
    const add = once(async () => {
      const body = { identifier: found.identifier, name: name.value.trim() || undefined, area: area.value.trim() || undefined }, { error } = await ask('device/add', body);
      status.textContent = error ?? t(T.added, { name: body.name ?? title });
      if (!error) swap(place, t(T.added, { name: body.name ?? title }));
    });
    if (!found.device) place.append(button(T.addThis, () => {
      swap(place, form(add, nameLabel, areaLabel, h('button.main', T.addThis)));
      name.focus();
    }, { label: `${T.addThis}: ${title}` }));
    return h('li', h('strong', title), quiet(joined(found.identifier, found.rssi && signal(found.rssi))), place);
  };
  const scan = async () => {
    status.textContent = T.scanning;
    again.disabled = true;
    const { data, error } = await ask('scan', { timeout: 5 });
    const all = (error ? [] : data.filter((found) => found.device || /micro:bit/i.test(found.bluetooth_name ?? found.name))).concat(gateway.radio_unknown ?? []).sort((a, b) => Boolean(a.device) - Boolean(b.device));
    status.textContent = error ?? (all.length ? t(T.found, { n: all.length }) : `${T.nothing} ${T.makecode}`);
    const known = all.filter((found) => found.device).map(entry);
    swap(list, ...all.filter((found) => !found.device).map(entry));
    swap(old, known.length ? h('details', h('summary', t(T.known, { n: known.length })), h('ul.found', known)) : '');
    again.disabled = false;
    if (document.activeElement === document.body) again.focus();
  };
  const again = button(T.scan, scan), join = joinButton(), dialog = open(T.add, h('div', join), status, list, old, h('div.end', devices.size > 0 && button(T.number, () => { dialog.close(); numbering = new Numbering(); }), again, button(T.close, () => dialog.close(), { class: 'main', autofocus: true })));
  // The time that is left is shown on the page.
  join.addEventListener('click', () => dialog.close());
  scan();
};
