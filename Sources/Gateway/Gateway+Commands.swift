import BlueZ
import GATT
import Log
import MQTT

/// Commands come in, are written, and their outcomes go out.
extension Gateway {
  // MARK: The broker's events

  func heard(_ event: MQTTEvent) {
    switch event {
    case .connected:
      broker.connectedSince = .now
      broker.connects += 1
      recallDevices()
      bridgeChanged()
    case .disconnected:
      broker.connectedSince = nil
      bridgeChanged()
    case .connectFailed, .subscriptionRefused:
      // The client says so in the log.
      break
    case .message(let message):
      if message.topic == topics.bridgeDevices { return recall(message.payload) }
      take(message)
    }
  }

  private func take(_ message: MQTTReceived) {
    switch topics.request(on: message.topic.string) {
    case .set(let id, let property):
      guard let device = byID[id], let index = profile.properties.firstIndex(of: property) else { return }
      command(message, device, index)
    case .refused(let id, let property, let reason):
      guard let device = byID[id] else { return }
      counters.commands += 1
      log.info("command rejected: \(reason)", device.fields)
      let asker = Asker(
        of: message, answeredOn: device.topics.result(ofProperty: property),
        transaction: WriteCommand.transaction(in: message.payload))
      answer(.rejected(reason: reason), requested: nil, to: asker)
    case .bridge(let verb):
      let asker = Asker(of: message, answeredOn: topics.bridgeResponse(to: verb), transaction: nil)
      let error = "version \(Version.current) does not know the request \(verb)"
      send(Payload.response(error: error, transaction: nil), to: asker)
    case nil:
      break
    }
  }

  private func command(_ message: MQTTReceived, _ device: Device, _ index: Int) {
    let channel = device.channels[index]
    if message.retain, channel.recentCommands.contains(message.payload) {
      return log.debug("a retained command of before is passed over", device.fields)
    }
    if message.payload.count <= WriteCommand.longestPayload {
      device.channels[index].remember(command: message.payload)
    }
    counters.commands += 1
    do throws(Rejection) {
      let command = try WriteCommand(message.payload, for: channel.property)
      let asker = Asker(of: message, answeredOn: channel.topics.result, transaction: command.transaction)
      if let reason = obstacle(to: channel, of: device) {
        return answer(.failed(reason: reason), requested: command.value, to: asker)
      }
      let actions = device.channels[index].write?.command(
        Device.Write.Command(value: command.value, tag: asker))
      perform(actions ?? [], device, index)
    } catch {
      log.info("command rejected: \(error.reason)", device.fields)
      let asker = Asker(of: message, answeredOn: channel.topics.result, transaction: error.transaction)
      answer(.rejected(reason: error.reason), requested: nil, to: asker)
    }
  }

  /// Why a command can never be carried out, not even later.
  private func obstacle(to channel: Device.Channel, of device: Device) -> String? {
    switch device.session.state {
    case .stopped: "the gateway is stopping"
    case .live where channel.characteristic == nil: "the device does not offer \(channel.property.name)"
    case .live, .absent, .waiting, .connecting, .subscribing, .leaving: nil
    }
  }

  // MARK: Confirmed writes

  /// The link is live: what is wanted is brought about, or is told to be impossible.
  func writesCanBegin(on device: Device) {
    for index in device.channels.indices {
      let channel = device.channels[index]
      if let reason = obstacle(to: channel, of: device) {
        perform(device.channels[index].write?.abandon(reason: reason) ?? [], device, index)
      } else {
        perform(device.channels[index].write?.linkUp() ?? [], device, index)
      }
    }
  }

  func writeEnded(_ device: Device, _ index: Int) {
    perform(device.channels[index].write?.linkDown() ?? [], device, index)
  }

  func abandonWrites(of device: Device, reason: String) {
    for index in device.channels.indices {
      perform(device.channels[index].write?.abandon(reason: reason) ?? [], device, index)
    }
  }

  private func perform(_ actions: [Device.Write.Action], _ device: Device, _ index: Int) {
    let channel = device.channels[index]
    for action in actions {
      switch action {
      case .write(let value, let operation):
        loop.task(of: self) { gateway in
          let result = await gateway.write(value, channel)
          gateway.perform(device.channels[index].write?.wrote(operation, result) ?? [], device, index)
          if case .failure(.timeout) = result { gateway.perform(device.session.unresponsive(), on: device) }
        }
      case .read(let operation):
        loop.task(of: self) { gateway in
          let result = await gateway.readBack(channel)
          gateway.perform(device.channels[index].write?.readBack(operation, result) ?? [], device, index)
          if case .failure(.timeout) = result { gateway.perform(device.session.unresponsive(), on: device) }
        }
      case .publish(let value):
        publishState(channel.topics.value, Payload.value(value))
        if channel.property == .microbitPeriod { perform(device.session.periodIs(value), on: device) }
      case .answer(let command, let outcome):
        answer(outcome, requested: command.value, to: command.tag)
        log.info("\(channel.property.name) \(command.value): \(outcome.status)", device.fields)
      case .restoreFailed(let value, let failure):
        log.warning("\(channel.property.name) \(value) could not be applied: \(failure)", device.fields)
      }
    }
  }

  private func write(_ value: Int, _ channel: Device.Channel) async -> Result<Void, WriteFailure> {
    guard let characteristic = channel.characteristic else { return .failure(.linkLost) }
    do {
      try await central.write(try channel.property.codec.encode(value), to: characteristic)
      return .success(())
    } catch {
      return .failure(WriteFailure(error))
    }
  }

  private func readBack(_ channel: Device.Channel) async -> Result<Int, WriteFailure> {
    guard let characteristic = channel.characteristic else { return .failure(.linkLost) }
    do {
      return .success(try channel.property.codec.decode(try await central.read(characteristic)))
    } catch {
      return .failure(WriteFailure(error))
    }
  }

  private func answer(_ outcome: Outcome, requested: Int?, to asker: Asker) {
    send(
      Payload.result(outcome, requested: requested, transaction: asker.transaction, time: .now), to: asker)
  }

  private func send(_ payload: [UInt8], to asker: Asker) {
    for message in asker.answer(payload, qos: qos) { publish(message) }
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
