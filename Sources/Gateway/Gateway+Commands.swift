import BlueZ
import EventLoop
import GATT
import JSON
import Log
import MQTT

/// Commands come in, are written, and their outcomes go out.
extension Gateway {
  func command(_ message: MQTTReceived, _ channel: Device.Channel, of device: Device) {
    let name = channel.property.name
    if message.retain, memory.records[device.address]?.hasTaken(message.payload, for: name) == true {
      return log.debug("retained command ignored: it was handled before", device.fields)
    }
    // One that comes while the gateway stops is not carried out: retained, it is for the next start.
    if !isStopping { memory.change(device.address) { $0.take(message.payload, for: name) } }
    counters.commands += 1
    do throws(Rejection) {
      let command = try WriteCommand(message.payload, for: channel.property)
      let asker = Asker(of: message, answeredOn: channel.topics.result, transaction: command.transaction)
      if let reason = obstacle(to: channel, of: device) {
        return answer(.failed(reason: reason), requested: command.value, to: asker)
      }
      input(channel, of: device) {
        $0.command(
          Device.Write.Command(
            value: command.value, tag: asker,
            timeToLive: command.ttl.map { TimeToLive(seconds: $0, from: .now) }))
      }
    } catch {
      log.info("command rejected: \(error.reason)", device.fields)
      let asker = Asker(of: message, answeredOn: channel.topics.result, transaction: error.transaction)
      answer(.rejected(reason: error.reason), requested: nil, to: asker)
    }
  }

  /// A command for a property that is none, or cannot be set.
  func refuse(_ message: MQTTReceived, _ device: Device, property: String, _ reason: String) {
    // Out of the broker's store: nobody waits for an answer, and it would be given at every connection.
    if message.retain { return }
    counters.commands += 1
    log.info("command rejected: \(reason)", device.fields)
    let asker = Asker(
      of: message, answeredOn: device.topics.result(ofProperty: property),
      transaction: WriteCommand.transaction(in: message.payload))
    answer(.rejected(reason: reason), requested: nil, to: asker)
  }

  /// Why a command can never be carried out, not even later.
  private func obstacle(to channel: Device.Channel, of device: Device) -> String? {
    switch device.session.state {
    case .stopped: isStopping ? "the gateway is stopping" : "the device is disabled"
    case .live where channel.characteristic == nil: "the device does not offer \(channel.property.name)"
    case .live, .absent, .waiting, .connecting, .subscribing, .leaving: nil
    }
  }

  // MARK: Confirmed writes

  /// The link is live: what is wanted is brought about, or is told to be impossible.
  func writesCanBegin(on device: Device) {
    for channel in device.channels {
      if let reason = obstacle(to: channel, of: device) {
        input(channel, of: device) { $0.abandon(reason: reason) }
      } else {
        input(channel, of: device) { $0.linkUp() }
      }
    }
  }

  func abandonWrites(of device: Device, reason: String) {
    for channel in device.channels { input(channel, of: device) { $0.abandon(reason: reason) } }
  }

  /// Gives the property's machine, if it is a writable one, an input, and carries out what that asks for.
  func input(
    _ channel: Device.Channel, of device: Device, _ input: (inout Device.Write) -> [Device.Write.Action]
  ) {
    guard channel.write != nil else { return }
    perform(input(&channel.write!), on: channel, of: device)
    watchDeadline(channel, of: device)
  }

  /// A command that waits and has a time to live is given up in time.
  private func watchDeadline(_ channel: Device.Channel, of device: Device) {
    let deadline = channel.write?.deadline
    guard deadline != channel.expiry?.deadline else { return }
    channel.expiry?.timer.cancel()
    channel.expiry = deadline.map { deadline in
      let timer = loop.timer(after: Moment.now.duration(to: deadline)) { [weak self] in
        self?.assumeIsolated { gateway in
          channel.expiry = nil
          gateway.input(channel, of: device) { $0.expire(at: .now) }
        }
      }
      return Device.Expiry(deadline: deadline, timer: timer)
    }
  }

  private func perform(_ actions: [Device.Write.Action], on channel: Device.Channel, of device: Device) {
    for action in actions {
      switch action {
      case .write(let value, let operation):
        loop.task(of: self) { gateway in
          let result = await gateway.write(value, channel)
          gateway.input(channel, of: device) { $0.wrote(operation, result) }
        }
      case .read(let operation):
        loop.task(of: self) { gateway in
          let result = await gateway.read(channel)
          gateway.input(channel, of: device) { $0.read(operation, result) }
        }
      case .publish(let value):
        channel.value = value
        publishState(channel.topics.value, Payload.value(value))
        if channel.property == .microbitPeriod { perform(device.session.periodIs(value), on: device) }
      case .answer(let command, let outcome):
        answer(outcome, requested: command.value, to: command.tag)
        log.info("\(channel.property.name) \(command.value): \(outcome.status)", device.fields)
        keep(command, outcome, channel, of: device)
      case .wanted(let value):
        want(value, channel.property, of: device)
      case .restoreFailed(let value, let failure):
        log.warning("\(channel.property.name) \(value) could not be applied: \(failure)", device.fields)
      case .unresponsive:
        perform(device.session.unresponsive(), on: device)
      }
    }
  }

  /// What waits for as long as it takes waits through a restart as well; what was given up does not.
  private func keep(
    _ command: Device.Write.Command, _ outcome: Outcome, _ channel: Device.Channel, of device: Device
  ) {
    switch outcome {
    case .pending:
      if command.timeToLive == nil {
        want(command.value, channel.property, of: device)
      } else {
        // Nor does the one whose place it has taken.
        giveUp(channel, of: device)
      }
    case .failed where isStopping:
      // What waits, or is on its way, waits for the next start.
      if command.timeToLive == nil { want(command.value, channel.property, of: device) }
    case .failed, .timeout:
      giveUp(channel, of: device)
    case .applied, .adjusted, .rejected, .superseded:
      break
    }
  }

  /// A command is wanted no more: what was before it is again. The configuration's own value is not remembered, so
  /// that it can change there.
  private func giveUp(_ channel: Device.Channel, of device: Device) {
    let wanted = channel.write?.wanted
    let entry = configuration.device(matching: device.address, name: device.info.name)
    let isConfigured = channel.property == .microbitPeriod && wanted == entry?.period
    memory.change(device.address) { record in
      record.wanted[channel.property.name] = isConfigured && record.changes.period == nil ? nil : wanted
    }
    tellWanted(wanted, channel.property, of: device)
  }

  /// The configuration or a request names another period, or none.
  func changeWanted(_ period: Int?, by origin: WantedOrigin, of device: Device) {
    for channel in device.channels where channel.property == .microbitPeriod {
      input(channel, of: device) { $0.want(period, by: origin) }
    }
    tellWanted(period, .microbitPeriod, of: device)
  }

  /// `value` shall hold from now on: in this run, in the next, and with the next gateway.
  func want(_ value: Int?, _ property: Property, of device: Device) {
    memory.change(device.address) { $0.wanted[property.name] = value }
    tellWanted(value, property, of: device)
  }

  private func tellWanted(_ value: Int?, _ property: Property, of device: Device) {
    guard device.info.wanted[property.name] != value else { return }
    device.info.wanted[property.name] = value
    // It may have been removed, and its topics with it.
    guard devices[device.address] === device, device.holder.party == .this else { return }
    publishInfo(of: device)
  }

  private func write(_ value: Int, _ channel: Device.Channel) async -> Written {
    guard let characteristic = channel.characteristic else { return .notWritten(.linkLost) }
    let codec = channel.property.codec
    let held: Result<[UInt8], CentralError>
    do {
      held = try await central.write(try codec.encode(.integer(value)), to: characteristic)
    } catch {
      return .notWritten(WriteFailure(error))
    }
    do {
      return .holds(try codec.decodeInteger(try held.get()))
    } catch {
      return .notReadBack(WriteFailure(error))
    }
  }

  private func read(_ channel: Device.Channel) async -> Result<Int, WriteFailure> {
    guard let characteristic = channel.characteristic else { return .failure(.linkLost) }
    do {
      return .success(try channel.property.codec.decodeInteger(try await central.read(characteristic)))
    } catch {
      return .failure(WriteFailure(error))
    }
  }

  func answer(_ outcome: Outcome, requested: Int?, to asker: Asker) {
    send(
      Payload.result(outcome, requested: requested, transaction: asker.transaction, time: .now), to: asker)
  }

  func send(_ payload: [UInt8], to asker: Asker) {
    for message in asker.answer(payload, qos: qos) {
      log.debug("answered", ["topic": message.topic, "payload": Excerpt.beginning(of: payload)])
      publish(message, atOnce: true)
    }
  }
}

extension WriteFailure {
  fileprivate init(_ error: any Error) {
    switch error {
    case CentralError.disconnected, CentralError.gone, CentralError.unavailable: self = .linkLost
    case CentralError.timedOut: self = .timeout
    default: self = .failed(reason: "\(error)")
    }
  }
}
