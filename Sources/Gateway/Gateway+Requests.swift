import BlueZ
import Configuration
import EventLoop
import GATT
import JSON
import Log
import MQTT

/// Requests to the gateway itself: they change what is remembered, and what follows from that is done by
/// ``Gateway/reconsider()``.
extension Gateway {
  /// Scans that run at a time.
  private static let mostSurveys = 8

  func request(_ verb: String, _ message: MQTTReceived) {
    let topic = topics.bridgeResponse(to: verb)
    do throws(Rejection) {
      let request = try BridgeRequest(verb: verb, payload: message.payload)
      let asker = Asker(of: message, answeredOn: topic, transaction: request.transaction)
      log.debug("request", ["verb": verb])
      do throws(Refusal) {
        if let data = try carryOut(request.content, for: asker) { respond(data, to: asker) }
      } catch {
        refuse(verb, error.reason, to: asker)
      }
    } catch {
      refuse(
        verb, error.reason, to: Asker(of: message, answeredOn: topic, transaction: error.transaction))
    }
  }

  /// Why a request cannot be met.
  struct Refusal: Error {
    let reason: String
    init(_ reason: String) { self.reason = reason }
  }

  private func respond(_ data: JSONValue, to asker: Asker) {
    send(Payload.response(data, transaction: asker.transaction), to: asker)
  }

  private func refuse(_ verb: String, _ reason: String, to asker: Asker) {
    log.info("request refused: \(reason)", ["verb": verb])
    send(Payload.response(error: reason, transaction: asker.transaction), to: asker)
  }

  /// - Returns: the data of the answer; nil when the answer follows later.
  private func carryOut(
    _ request: BridgeRequest.Content, for asker: Asker
  ) throws(Refusal) -> JSONValue? {
    switch request {
    case .devices: return .array(listing.map(\.json))
    case .health: return health
    case .scan(let seconds): try survey(for: seconds, asker)
    case .addDevice(let address, let options): return try add(address, options)
    case .removeDevice(let id): return try remove(id)
    case .reconnectDevice(let id): return try reconnect(id)
    case .renameDevice(let id, let new): return try rename(id, to: new)
    case .setOptions(let id, let update): return try change(id, update)
    case .resetAdapter(let name): try resetAdapter(name, asker)
    case .setLogLevel(let level):
      Logger.level = level
      return ["level": .string(level.name)]
    case .reload: reload(for: asker)
    }
    return nil
  }

  // MARK: Devices

  private func known(_ id: DeviceID) throws(Refusal) -> Device {
    if let device = byID[id] { return device }
    let near = nearest(to: id.description, among: byID.keys.map(\.description))
    throw Refusal("no device is called \(id)" + (near.map { ": did you mean \($0)?" } ?? ""))
  }

  private func add(_ address: BluetoothAddress, _ options: DeviceOptions) throws(Refusal) -> JSONValue {
    if let id = options.id { try checkFree(id, for: address) }
    if devices[address] == nil, devices.count >= Self.mostDevices {
      throw Refusal("the limit of \(Self.mostDevices) devices is reached")
    }
    let before = memory.records[address] ?? DeviceRecord(identifier: address)
    memory.change(address) { record in
      record.isAdded = true
      record.isRemoved = false
      record.isForgotten = false
      record.changes.add(options)
      // It names the period anew: what was commanded before counts no more.
      if options.period != nil { record.wanted[Property.microbitPeriod.name] = nil }
    }
    reconsider()
    guard let device = devices[address] else {
      memory.change(address) { $0 = before }
      throw Refusal("\(address) is pinned to another gateway: see devices[].gateway of config.json")
    }
    if options.period != nil { changeWanted(device.settings.period.value, by: .request, of: device) }
    announce(device)
    return DeviceListing(device).json
  }

  private func checkFree(_ id: DeviceID, for address: BluetoothAddress) throws(Refusal) {
    if let other = byID[id], other.address != address {
      throw Refusal("the id \(id) is in use by \(other.address)")
    }
    if let other = BluetoothAddress(compact: id.description[...]), other != address {
      throw Refusal("the id \(id) is that of another micro:bit, \(other)")
    }
  }

  private func remove(_ id: DeviceID) throws(Refusal) -> JSONValue {
    let device = try known(id)
    memory.change(device.address) { record in
      // What is out is still to be taken back.
      let before = record
      record = DeviceRecord(identifier: device.address)
      (record.id, record.name, record.announced) = (before.id, before.name, before.announced)
      record.isRemoved = configuration.device(matching: device.address, name: device.info.name) != nil
    }
    reconsider()
    return ["id": .string(id.description), "identifier": .string(device.address.description)]
  }

  private func rename(_ id: DeviceID, to new: DeviceID) throws(Refusal) -> JSONValue {
    let device = try known(id)
    try checkFree(new, for: device.address)
    if case .other(let gateway) = device.holder.party {
      throw Refusal(
        "\(id) is held by the gateway \(gateway), which knows it by this id: rename it there first")
    }
    memory.change(device.address) { $0.changes.id = new }
    reconsider()
    return ["from": .string(id.description), "to": .string(new.description)]
  }

  private func change(_ id: DeviceID, _ update: DeviceOptionsUpdate) throws(Refusal) -> JSONValue {
    let device = try known(id)
    if update.period != .keep, case .other(let gateway) = device.holder.party {
      throw Refusal("\(id) is held by the gateway \(gateway): its period is set there")
    }
    memory.change(device.address) { record in
      record.changes.apply(update)
      if update.period != .keep { record.wanted[Property.microbitPeriod.name] = record.changes.period }
    }
    reconsider()
    // Even where the settings are as before: a command may have been in between, which this one overrules.
    if update.period != .keep { changeWanted(device.settings.period.value, by: .request, of: device) }
    return devices[device.address].map { DeviceListing($0).json } ?? ["id": .string(id.description)]
  }

  private func reconnect(_ id: DeviceID) throws(Refusal) -> JSONValue {
    let device = try known(id)
    guard device.settings.isEnabled.value else {
      throw Refusal("\(id) is disabled: enable it by device/options")
    }
    perform(device.session.reconnect(), on: device)
    return ["id": .string(id.description), "state": .string(device.session.state.rawValue)]
  }

  // MARK: The adapter

  private func survey(for seconds: Int, _ asker: Asker) throws(Refusal) {
    guard adapter.isOn else { throw Refusal("the Bluetooth adapter is missing or off") }
    guard surveys.count < Self.mostSurveys else {
      throw Refusal("\(Self.mostSurveys) scans are running: try again later")
    }
    surveyCount += 1
    let number = surveyCount
    surveys.append(Survey(number: number))
    updateScan()
    central.assumeIsolated { $0.retell() }
    loop.timer(after: .seconds(seconds)) { [weak self] in
      self?.assumeIsolated { $0.surveyIsOver(number, asker) }
    }
  }

  private func surveyIsOver(_ number: UInt64, _ asker: Asker) {
    guard let index = surveys.firstIndex(where: { $0.number == number }) else { return }
    let survey = surveys.remove(at: index)
    updateScan()
    respond(
      .array(
        survey.peripherals.map { peripheral in
          peripheral.json(knownAs: devices[peripheral.address]?.id)
        }), to: asker)
  }

  private func resetAdapter(_ name: String?, _ asker: Asker) throws(Refusal) {
    let own = configuration.bluetooth.adapter
    guard name == nil || name == own else {
      throw Refusal("this gateway uses \(own), not \(Excerpt(name ?? ""))")
    }
    log.notice("powering the adapter off and on", ["adapter": own])
    loop.task(of: self) { gateway in
      do throws(CentralError) {
        try await gateway.central.resetAdapter()
        gateway.respond(["adapter": .string(own)], to: asker)
      } catch {
        gateway.refuse(Verb.resetAdapter.rawValue, "\(error)", to: asker)
      }
    }
  }

  // MARK: Configuration

  /// Reads config.json again; what is wrong with it is told, and changes nothing.
  ///
  /// - Parameter asker: who asked for it; nil: a signal.
  func reload(for asker: Asker?) {
    let path = configurationPath
    loop.task(of: self) { gateway in
      // Off the loop: a file may be on a disk that sleeps, or on a network.
      let result = await EventLoop.blocking {
        Result { () throws(ConfigurationFailure) in try ConfigurationFile.load(path: path) }
      }
      switch result {
      case .failure(let failure):
        gateway.log.error("configuration not reloaded: keeping the previous one", ["error": failure])
        if let asker { gateway.refuse(Verb.reload.rawValue, failure.description, to: asker) }
      case .success(let file):
        let restart = gateway.take(file)
        if let asker {
          gateway.respond(["restart_required": .array(restart.map(JSONValue.string))], to: asker)
        }
      }
    }
  }

  /// - Returns: the keys that have changed and take effect at the next start only.
  private func take(_ file: ConfigurationFile) -> [String] {
    for warning in file.warnings { log.warning("\(warning.description(in: file.path))") }
    let plan = file.configuration.changes(from: configuration)
    let before = discovery
    configuration = plan.configuration
    qos = QoS(configuration.mqtt)
    if discovery?.prefix != before?.prefix {
      if let before { unsubscribeHomeAssistant(before) }
      subscribeHomeAssistant()
      reviewDiscovery()
    }
    reconsider()
    announceAll()
    if plan.waiting.isEmpty {
      log.notice("configuration reloaded", ["configuration": file.path])
    } else {
      log.warning(
        "configuration reloaded; some changes need a restart", ["keys": plan.waiting.joined(separator: ", ")]
      )
    }
    return plan.waiting
  }
}
