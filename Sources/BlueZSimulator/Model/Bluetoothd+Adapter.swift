import DBus

/// The adapter's power and presence, and bluetoothd's end and start.
extension Bluetoothd {
  // MARK: Power

  /// Powers the adapter on or off, by a Set of Powered or by a control command.
  mutating func setPowered(_ on: Bool, for call: CallID?, at now: ContinuousClock.Instant) {
    switch (adapter, on) {
    case (.absent, _), (.on, true), (.off, false):
      if let call { emit(.reply(call, [])) }
    case (.off, true):
      adapter = .on
      if let call { emit(.reply(call, [])) }
      change(adapter: [("Powered", .boolean(true))])
    case (.on, false):
      adapter = .off
      endLinks(at: now)
      for index in devices.keys.sorted() where devices[index]?.temporary == true { removeObject(of: index) }
      if let call { emit(.reply(call, [])) }
      invalidateStrengths()
      change(adapter: [("Powered", .boolean(false)), ("Discovering", .boolean(false))])
    }
  }

  /// Ends discovery, and all links and connection attempts.
  private mutating func endLinks(at now: ContinuousClock.Instant) {
    discoverers.removeAll()
    scan += 1
    for index in devices.keys.sorted() {
      lose(index, at: now)
      cancelConnect(index, .abortByLocal, at: now)
    }
  }

  // MARK: Presence

  mutating func unplug(at now: ContinuousClock.Instant) {
    guard adapter != .absent else { return }
    adapter = .off
    // Calls that wait for a peripheral are never answered.
    for index in devices.keys {
      for call in (devices[index]?.operations ?? []).flatMap(\.calls) { emit(.abandon(call)) }
      devices[index]?.operations = []
    }
    endLinks(at: now)
    for index in devices.keys.sorted() { removeObject(of: index) }
    change(adapter: [("Powered", .boolean(false)), ("Discovering", .boolean(false))])
    emit(tree.remove(BlueZName.adapterPath))
    adapter = .absent
  }

  mutating func replug(at now: ContinuousClock.Instant) {
    guard adapter == .absent else { return }
    adapter = .on
    addAdapter(Describe.adapter(powered: false))
    addStoredDevices(at: now)
    // Its services register one by one, each with a signal.
    let uuids: [(String, DBusValue?)] = [("UUIDs", Describe.adapterUUIDs)]
    for _ in 0..<2 { change(adapter: uuids) }
    emit(.signal(tree.extend(BlueZName.adapterPath, with: [Describe.advertising])))
    change(adapter: uuids)
    change(adapter: [("Powered", .boolean(true))])
    for _ in 0..<3 { change(adapter: uuids) }
    change(adapter: [("Alias", .string("BlueZ 5.66"))])
  }

  private mutating func addAdapter(_ interfaces: [ObjectTree.Interface]) {
    emit(
      .signal(tree.add(BlueZName.adapterPath, .adapter, under: BlueZName.managerPath, interfaces)))
  }

  // MARK: bluetoothd

  /// Creates the initial objects.
  mutating func export() {
    emit(.signal(tree.add(BlueZName.managerPath, .manager, under: "/", Describe.manager)))
    guard adapter != .absent else { return }
    addAdapter(Describe.adapter(powered: true) + [Describe.advertising])
  }

  /// bluetoothd ends as by `systemctl stop`, and removes its objects.
  mutating func terminate(at now: ContinuousClock.Instant) -> [Effect] {
    let hadAdapter = adapter != .absent
    if hadAdapter {
      if adapter == .on {
        adapter = .off
        endLinks(at: now)
        change(adapter: [("Powered", .boolean(false)), ("Discovering", .boolean(false))])
      }
      emit(.signal(tree.strip(BlueZName.adapterPath, of: [BlueZName.media])))
    }
    emit(.signal(tree.strip(BlueZName.managerPath, of: [BlueZName.healthManager])))
    emit(
      .signal(
        tree.strip(
          BlueZName.managerPath,
          of: [DBusName.introspectable, BlueZName.agentManager, BlueZName.profileManager])))
    for index in devices.keys.sorted() { removeObject(of: index) }
    if hadAdapter { emit(tree.remove(BlueZName.adapterPath)) }
    return takeEffects()
  }

  /// bluetoothd ends abruptly: its objects are gone without signals. Links are kept by the kernel.
  mutating func vanish() -> [Effect] {
    for index in devices.keys.sorted() { removeObject(of: index) }
    discoverers.removeAll()
    agents.removeAll()
    found.removeAll()
    connecting.removeAll()
    linking = nil
    scan += 1
    tree = ObjectTree()
    // Only sockets are to be closed: there are no signals.
    return takeEffects().filter { if case .hangUp = $0 { true } else { false } }
  }

  /// bluetoothd starts with its stored devices.
  mutating func restart(at now: ContinuousClock.Instant) -> [Effect] {
    if adapter != .absent { adapter = .on }
    export()
    if adapter != .absent { addStoredDevices(at: now) }
    return takeEffects()
  }
}
