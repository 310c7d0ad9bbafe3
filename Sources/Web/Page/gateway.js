class GatewayPage {
  constructor() {
    Object.assign(this, { wrong: h('ul'), adapters: h('ul.others'), broker: h('dl'), about: h('dl'), events: h('ul.log', { tabindex: 0, label: T.events }) });
    this.el = h('div', card(T.wrong, this.wrong), h('div.cards', card(T.adapters, this.adapters, h('div', joinButton())), card(T.broker, this.broker), card(T.gateway, this.about), card(T.events, this.events)));
    this.update();
  }

  update() {
    const g = gateway, { broker = {}, spool = {}, counters = {}, findings = [], adapters = [], events = [] } = g;
    fill(this.wrong, [findings, findings.map(findingText)], () => (findings.length ? findings.map((f) => h(`li.finding ${f.level}`, h('strong', findingText(f)), remedy(f))) : [h('li', T.well)]));
    fill(this.adapters, [adapters, today()], () => adapters.map((a) => h('li', h('span', h('strong', a.name), ` ${T.adapterStates[a.state] ?? a.state}`, a.recovery && h('p.fault', t(T.recovery, { ...a.recovery, time: at(a.recovery.since) }))), h('span.quiet', joined(a.state === 'on' && t(T.links, { n: a.links.used, most: a.links.most }), a.address)))));
    const host = `${broker.host}:${broker.port}`;
    fill(this.broker, [broker, spool], () => pairs([[T.broker, t(broker.connected ? T.brokerOn : T.brokerOff, { host })], [T.connectedSince, broker.connected && when(broker.connected_since)], [T.connects, broker.connects],
      [T.spool, spool.messages ? t(T.spoolOf, { n: spool.messages, size: number(ceil(spool.bytes / 1024)) }) : T.spoolNone], [T.spoolOldest, spool.messages > 0 && when(spool.oldest)], [T.spoolLost, spool.lost]]));
    fill(this.about, [g.devices, counters], () => pairs([[T.name, g.id], [T.area, g.area], [T.title, t(T.online, { on: g.devices?.online, n: g.devices?.known })], [T.version, g.version], [T.started, when(g.started)],
      [T.readings, counters.readings], [T.malformed, counters.malformed], [T.lostMessages, counters.lost]]));
    fill(this.events, [today(), events, events.map((e) => devices.has(e.device) && nameOf(devices.get(e.device)))], () => (events.length ? events.toReversed().map((e) => h('li', h('time', at(e.time)), e.device && h('strong', `${devices.has(e.device) ? nameOf(devices.get(e.device)) : e.device} `), happened(e))) : [h('li', T.noEvents)]));
  }
}
