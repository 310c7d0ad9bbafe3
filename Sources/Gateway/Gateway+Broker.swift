import Configuration
import EventLoop
import GATT
import JSON
import Log
import MQTT

/// What comes from the broker: who else is there, who holds which device, and when all that is retained has come.
extension Gateway {
  /// An echo that is not heard by then (a broker may not let the gateway hear itself) is waited for no longer. On a bad
  /// network packets are late by seconds, and to go ahead without what the broker retains is to write over it.
  private static let echoPatience = Duration.seconds(5)

  func subscribe() {
    mqtt.assumeIsolated { [topics] mqtt in
      mqtt.subscribe(topics.requests)
      for filter in topics.bridgeNews { mqtt.subscribe(filter) }
    }
    subscribeHomeAssistant()
  }

  /// After the devices' own topics: a retained command is for their holders, which those tell.
  func subscribeGroups() {
    mqtt.assumeIsolated { [topics] mqtt in for filter in topics.groupCommands { mqtt.subscribe(filter) } }
  }

  func heard(_ event: MQTTEvent) {
    switch event {
    case .connected:
      broker.connectedSince = .now
      broker.connects += 1
      early = EarlyMessages()
      perform(claim.connected())
      bridgeChanged()
    case .disconnected:
      broker.connectedSince = nil
      gatewaysOnline = []
      cancelFollowUps()
      claim.disconnected()
      bridgeChanged()
    case .connectFailed, .subscriptionRefused:
      // The client says so in the log.
      break
    case .message(let message):
      take(message)
    }
  }

  private func take(_ message: MQTTReceived) {
    let inbound = topics.inbound(message.topic.string)
    if case .request(Verb.health.rawValue) = inbound, let echo = echo(in: message.payload) {
      return heardEcho(echo)
    }
    if inbound?.asksForSomething == true, claim.state != .held { return keepEarly(message) }
    if inbound?.asksForSomething == true {
      log.debug("received", ["topic": message.topic, "payload": Excerpt.beginning(of: message.payload)])
    }
    switch inbound {
    case .set(let target, let property):
      guard let index = profile.properties.firstIndex(of: property) else { return }
      for device in devices(of: target) {
        if isResponsible(for: device) {
          command(message, device.channels[index], of: device)
        } else {
          leave(message, property, of: device)
        }
      }
    case .refused(let target, let property, let reason):
      for device in devices(of: target) where isResponsible(for: device) {
        refuse(message, device, property: property, reason)
      }
    case .request(let verb): request(verb, message)
    case .response:
      if claim.state != .held, isAnswerOfAnother(message.payload) { perform(claim.answered()) }
    case .bridgeState(let gateway):
      bridgeState(of: gateway, isOnline: message.payload.elementsEqual(Payload.availability(true)))
    case .bridgeInfo:
      if let (run, started) = BridgeInfo.origin(in: message.payload) {
        perform(claim.heard(run: run, started: started))
      }
    case .deviceInfo(let id):
      if let device = byID[id] {
        heardInfo(message.payload, of: device)
      } else {
        heardInfo(message.payload, ofLeftover: id)
      }
    case .deviceAvailability(let id):
      if let device = byID[id] { heardAvailability(message.payload, of: device) }
    case nil:
      heardHomeAssistant(message)
    }
  }

  /// It came before it is known whether this gateway may speak under its id, and who holds its devices.
  private func keepEarly(_ message: MQTTReceived) {
    guard claim.state == .listening || claim.state == .asking else { return }
    early.append(message)
    if early.lost == 1 {
      log.warning(
        "too many commands right after connecting: this one and later ones are ignored",
        ["topic": message.topic])
    }
  }

  // MARK: Echoes

  /// Asks for an echo: when it comes, all that the broker retained for the subscriptions of before has come.
  /// - Returns: its number.
  private func askForEcho() -> UInt64 {
    echoes += 1
    let number = echoes
    let question: JSONValue = ["transaction": .string("\(run)-\(number)")]
    mqtt.assumeIsolated { [topics] in
      $0.send(MQTTMessage(topic: topics.bridgeRequest(Verb.health.rawValue), payload: question.bytes))
    }
    loop.timer(after: Self.echoPatience) { [weak self] in
      self?.assumeIsolated { gateway in
        if number == gateway.question { gateway.perform(gateway.claim.timeout()) }
        gateway.settle(upTo: number)
      }
    }
    return number
  }

  /// The number of an echo of this run.
  private func echo(in payload: [UInt8]) -> UInt64? {
    guard payload.count < 64, case .object(let object) = try? JSONParser.parse(payload),
      case .string(let text) = object["transaction"], text.hasPrefix("\(run)-")
    else { return nil }
    return UInt64(text.dropFirst("\(run)-".count))
  }

  private func heardEcho(_ number: UInt64) {
    lastEcho = max(lastEcho, number)
    if number == question { perform(claim.cameRound()) }
    settle(upTo: number)
  }

  /// The number of the echo that comes after all that the broker retains for a subscription made now.
  func nextEcho() -> UInt64 { broker.connectedSince == nil ? .max : askForEcho() }

  /// The retained messages have come for the devices that await an echo up to `number`.
  private func settle(upTo number: UInt64) {
    guard claim.state == .held else { return }
    for device in byID.values {
      guard let awaited = device.awaitedEcho, awaited <= number else { continue }
      device.awaitedEcho = nil
      settle(device)
    }
    for (id, leftover) in leftovers where leftover.awaitedEcho <= number { clear(leftover, id) }
  }

  /// It is known now who holds the device. What an earlier run of this gateway has left may be out of date.
  private func settle(_ device: Device) {
    guard !device.isLive else { return }
    switch device.holder.party {
    case .other: break
    case .this: publishPresence(of: device)
    case .nobody:
      // Where there are others, one of them may just have found it, and not be heard yet.
      if isNamed(device), gatewaysOnline.isEmpty {
        publishState(device.topics.availability, Payload.availability(false))
      }
    }
  }

  // MARK: The id of this gateway

  private func perform(_ actions: [Claim.Action]) {
    for action in actions {
      switch action {
      case .ask:
        question = askForEcho()
        for device in byID.values { device.awaitedEcho = question }
        for id in leftovers.keys { leftovers[id]?.awaitedEcho = question }
      case .admit:
        for message in early.takeAll() { take(message) }
        mqtt.assumeIsolated { $0.admit() }
        settle(upTo: max(question, lastEcho))
        reviewDiscovery()
        announceAll()
      case .complain:
        log.error(
          "another gateway uses this id: give each its own gateway.id in config.json; not publishing until then",
          ["id": gatewayID])
      case .withdraw(let delay):
        mqtt.assumeIsolated { $0.withdraw(for: delay) }
      case .sayOnline:
        if !isStopping { publishState(topics.bridgeState, Payload.availability(true)) }
      case .sayInfo:
        bridgeChanged()
      }
    }
  }

  private func isAnswerOfAnother(_ payload: [UInt8]) -> Bool {
    guard case .object(let object) = try? JSONParser.parse(payload),
      case .string(let transaction) = object["transaction"], transaction.hasPrefix("\(run)-"),
      case .object(let data) = object["data"], case .string(let other) = data["run"]
    else { return false }
    return other != run.description
  }

  // MARK: Other gateways

  private func bridgeState(of gateway: GatewayID, isOnline: Bool) {
    if gateway == gatewayID {
      perform(claim.heard(isOnline: isOnline))
    } else if isOnline {
      gatewaysOnline.insert(gateway)
    } else {
      gatewaysOnline.remove(gateway)
    }
  }

  /// Whether commands for the device are this gateway's to answer: unless another one has it, and lives.
  private func isResponsible(for device: Device) -> Bool {
    switch device.holder.party {
    case .nobody, .this: true
    case .other(let gateway): !gatewaysOnline.contains(gateway)
    }
  }

  /// A command that another gateway carries out. Should the broker retain it, it is not to be carried out once more
  /// when the device is here.
  private func leave(_ message: MQTTReceived, _ property: Property, of device: Device) {
    memory.change(device.address) { $0.take(message.payload, for: property.name) }
  }

  private func heardInfo(_ payload: [UInt8], of device: Device) {
    // Most of what comes is the echo of what was said here last, and says nothing new.
    if device.holder.party == .this, payload == device.toldInfo { return }
    let notice = Holder.Notice(payload)
    // What cannot be read says nothing.
    if notice == nil, !payload.isEmpty { return }
    if let notice, notice.gateway != gatewayID, let identifier = notice.identifier,
      identifier != device.address
    {
      return heardNamesake(of: device, notice)
    }
    let before = device.holder.party
    switch device.holder.heard(notice, liveSince: device.liveSince) {
    case .sayAgain:
      if let notice { learnOrigin(of: device, notice) }
      publishPresence(of: device)
    case .standBy: standBy(device, notice?.wanted ?? [:], before: before)
    case nil: break
    }
  }

  /// Another gateway calls another device by this one's id. Of two that have a link the earlier one keeps it.
  private func heardNamesake(of device: Device, _ notice: Holder.Notice) {
    guard let since = notice.connectedSince else { return }
    if let own = device.liveSince, (own, gatewayID.description) < (since, notice.gateway.description) {
      publishPresence(of: device)
    } else {
      yieldID(of: device, to: notice.gateway)
    }
  }

  /// It came here before the broker could say where it was.
  private func learnOrigin(of device: Device, _ notice: Holder.Notice) {
    guard device.awaitedEcho != nil, device.info.moved == nil, notice.gateway != gatewayID else { return }
    device.info.moved = DeviceInfo.Move(from: notice.gateway, area: notice.area, time: .now)
  }

  /// An `offline` that is not true: of an earlier holder, or of its will come late.
  private func heardAvailability(_ payload: [UInt8], of device: Device) {
    guard device.isLive, !payload.elementsEqual(Payload.availability(true)) else { return }
    publishState(device.topics.availability, Payload.availability(true))
  }

  private func standBy(_ device: Device, _ wanted: [String: Int], before: Holder.Party) {
    if device.holder.party != before, case .other(let gateway) = device.holder.party {
      log.notice("held by another gateway", ["device": device.id, "gateway": gateway])
    }
    releaseStates(of: device)
    for channel in device.channels {
      let property = channel.property
      // Where nobody held it, every gateway that knows it has the command that waits here.
      if before != .nobody {
        input(channel, of: device) { $0.abandon(reason: "another gateway has taken the device over") }
      }
      input(channel, of: device) { $0.standBy(wanted: wanted[property.name]) }
      // Last: to give a command up is to go back to what was wanted before it.
      if let value = wanted[property.name] {
        memory.change(device.address) { $0.wanted[property.name] = value }
        device.info.wanted[property.name] = value
      }
    }
    perform(device.session.takenOver(), on: device)
    bridgeChanged()
  }

  /// Another gateway says these from now on.
  func releaseStates(of device: Device) {
    device.announcedHash = nil
    mqtt.assumeIsolated { mqtt in for topic in device.topics.states { mqtt.releaseState(topic) } }
  }
}
