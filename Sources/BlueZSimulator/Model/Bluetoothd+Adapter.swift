import DBus

/// The adapter's power and presence, and bluetoothd's end and start.
extension Bluetoothd {
  // MARK: Power

  /// Powers an adapter on or off, by a Set of Powered (`call`) or by a control command.
  mutating func setPowered(_ number: Int, _ on: Bool, for call: DBusCall? = nil) {
    switch (adapters[number].power, on) {
    case (.absent, _), (.on, true), (.off, false):
      if let call { reply(to: call) }
    case (.off, true):
      adapters[number].power = .on
      if let call { reply(to: call) }
      change(adapter: number, [("Powered", .boolean(true))])
    case (.on, false):
      adapters[number].power = .off
      endLinks(of: number)
      for key in keys(of: number) where !stored.contains(key) { removeObject(of: key) }
      if let call { reply(to: call) }
      invalidateStrengths(of: number)
      change(adapter: number, [("Powered", .boolean(false)), ("Discovering", .boolean(false))])
    }
  }

  /// The devices of an adapter, in order.
  private func keys(of number: Int) -> [DeviceKey] { devices.keys.filter { $0.adapter == number }.sorted() }

  /// Ends discovery, and all links and connection attempts.
  private mutating func endLinks(of number: Int) {
    adapters[number].discoverers.removeAll()
    adapters[number].scan += 1
    for key in keys(of: number) {
      lose(key)
      cancelConnect(key, .abortByLocal)
    }
  }

  // MARK: Presence

  mutating func unplug(_ number: Int) {
    guard adapters[number].power != .absent else { return }
    adapters[number].power = .off
    // Calls that wait for a peripheral are never answered.
    for key in keys(of: number) { devices[key]?.operations = [] }
    endLinks(of: number)
    for key in keys(of: number) { removeObject(of: key) }
    change(adapter: number, [("Powered", .boolean(false)), ("Discovering", .boolean(false))])
    emit(tree.remove(adapters[number].path))
    adapters[number].power = .absent
  }

  mutating func replug(_ number: Int, as name: String? = nil) {
    guard adapters[number].power == .absent else { return }
    adapters[number].name = name ?? "hci\(number)"
    adapters[number].power = .on
    let interfaces = Describe.adapter(adapters[number], powered: false)
    add(adapters[number].path, .adapter(number), under: BlueZName.root, interfaces)
    addStoredDevices(of: number)
    // The adapter's services register one by one, each with a signal.
    let uuids: [(String, DBusValue?)] = [("UUIDs", Describe.adapterUUIDs)]
    for _ in 0..<2 { change(adapter: number, uuids) }
    emit(tree.extend(adapters[number].path, with: [Describe.advertising]))
    change(adapter: number, uuids)
    change(adapter: number, [("Powered", .boolean(true))])
    for _ in 0..<3 { change(adapter: number, uuids) }
    change(adapter: number, [("Alias", .string("BlueZ 5.66"))])
  }

  // MARK: bluetoothd

  /// Creates the initial objects.
  mutating func export() {
    add(BlueZName.root, .manager, under: "/", Describe.manager)
    for adapter in adapters where adapter.power != .absent {
      let interfaces = Describe.adapter(adapter, powered: true) + [Describe.advertising]
      add(adapter.path, .adapter(adapter.number), under: BlueZName.root, interfaces)
    }
  }

  /// bluetoothd ends as by `systemctl stop`, and removes its objects.
  mutating func terminate() {
    let present = adapters.filter { $0.power != .absent }
    for adapter in present {
      if adapter.power == .on {
        adapters[adapter.number].power = .off
        endLinks(of: adapter.number)
        change(adapter: adapter.number, [("Powered", .boolean(false)), ("Discovering", .boolean(false))])
      }
      emit(tree.strip(adapter.path, of: [BlueZName.media]))
    }
    emit(tree.strip(BlueZName.root, of: [BlueZName.healthManager]))
    let others = [DBusName.introspectable, BlueZName.agentManager, BlueZName.profileManager]
    emit(tree.strip(BlueZName.root, of: others))
    for index in devices.keys.sorted() { removeObject(of: index) }
    for adapter in present { emit(tree.remove(adapter.path)) }
  }

  /// bluetoothd ends abruptly: its objects are gone without signals. Links are kept by the kernel.
  mutating func vanish() {
    for index in devices.keys.sorted() { removeObject(of: index) }
    agents.removeAll()
    for number in adapters.indices {
      adapters[number].discoverers.removeAll()
      adapters[number].found.removeAll()
      adapters[number].connecting.removeAll()
      adapters[number].linking = nil
      adapters[number].scan += 1
    }
    tree = ObjectTree()
    // Sockets are to be closed, but there are no signals.
    out.removeAll { if case .hangUp = $0 { false } else { true } }
  }

  /// bluetoothd starts with its stored devices.
  mutating func restart() {
    for number in adapters.indices where adapters[number].power != .absent { adapters[number].power = .on }
    export()
    for adapter in adapters where adapter.power != .absent { addStoredDevices(of: adapter.number) }
  }
}
