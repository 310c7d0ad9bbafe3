import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT
import Store

/// Turns messages on `…/set` and `…/get` topics into commands, and their outcomes into results.
final class CommandHandler: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  /// Before groups are subscribed to again: once for devices that become known together.
  private static let groupDelay = Duration.milliseconds(250)
  static let retainedReason =
    "retained commands require MQTT 5: publish it without the retain flag"

  private let context: BridgeContext
  private unowned let bridge: Bridge
  private var retained: RetainedCommands
  /// Arrives after the retained commands for all subscriptions so far.
  private var barrier: UInt64 = 0
  private var isResubscribing = false
  /// The topics whose retained command was rejected: each is answered once.
  private var rejectedTopics: [DeviceID: Set<String>] = [:]

  init(_ bridge: Bridge, _ context: BridgeContext, _ section: StateSection) {
    self.bridge = bridge
    self.context = context
    retained = RetainedCommands(section)
  }

  // MARK: Subscriptions

  func admitted() {
    for publisher in bridge.publishers { subscribeOwn(publisher) }
    subscribeGroups()
  }

  func disconnected() {
    for publisher in bridge.publishers { unsubscribe(publisher) }
    context.mqtt.unsubscribe(context.topics.groupCommands)
  }

  func subscribe(_ publisher: DevicePublisher) {
    subscribeOwn(publisher)
    barrier = bridge.admission.sendBarrier()
    // The broker then sends the retained commands to groups again, to which the other devices do not react again.
    guard !isResubscribing else { return }
    isResubscribing = true
    context.loop.timer(after: Self.groupDelay) { [weak self] in
      guard let self else { return }
      isResubscribing = false
      if bridge.isAdmitted { subscribeGroups() }
    }
  }

  private func subscribeOwn(_ publisher: DevicePublisher) {
    context.mqtt.subscribe(publisher.topics.commands, options: .retainAsPublished)
  }

  func unsubscribe(_ publisher: DevicePublisher) {
    context.mqtt.unsubscribe(publisher.topics.commands)
  }

  /// Retained commands are carried out again if the device comes back.
  func forget(_ device: DeviceDescription) {
    retained.forget(device.address)
    rejectedTopics[device.id] = nil
  }

  private func subscribeGroups() {
    context.mqtt.subscribe(context.topics.groupCommands, options: .retainAsPublished)
    barrier = bridge.admission.sendBarrier()
  }

  // MARK: Set

  func set(_ message: MQTTReceived, _ targets: [DevicePublisher], isGroup: Bool, _ name: String) {
    context.log.debug(
      "received", ["topic": message.topic, "payload": Excerpt.beginning(of: message.payload)])
    // The broker sends it again at the next start.
    if message.retain, bridge.isStopping { return }
    for publisher in targets {
      let profile = publisher.device.profile
      let index = profile.index(ofPropertyNamed: name)
      let property = index.map { profile.properties[$0] }
      if isGroup, property?.isWritable != true { continue }
      if message.retain, !acceptRetained(message, publisher, property) { continue }
      guard bridge.isResponsible(for: publisher) else {
        // What another gateway carries out is not repeated here later.
        handled(message, publisher.device.address)
        continue
      }
      execute(message, publisher, name, index)
    }
  }

  /// Begins a retained command, or rejects it.
  /// - Returns: whether to go on to `execute`, which also rejects what cannot be set.
  private func acceptRetained(
    _ message: MQTTReceived, _ publisher: DevicePublisher, _ property: Property?
  ) -> Bool {
    // The retained command was deleted: an equal one that is sent later is a new command.
    if message.payload.isEmpty {
      retained.remove(message.topic, for: publisher.device.address)
      return false
    }
    // It cannot be set: rejected when it is newly published. The copies that the broker sends on every connection come
    // before the barrier.
    guard let property, property.isWritable else { return bridge.admission.hasArrived(barrier) }
    if !context.isMQTT5 || property.kind == .event {
      let isNew = rejectedTopics[publisher.device.id, default: []].insert(message.topic.string).inserted
      if isNew, bridge.isResponsible(for: publisher) {
        let reason =
          context.isMQTT5 ? "a retained command for an event is not carried out" : Self.retainedReason
        reject(
          message, publisher, property.name,
          Rejection(reason, CommandPayload.transaction(in: message.payload)))
      }
      return false
    }
    let address = publisher.device.address
    guard retained.isNew(message, for: address) || bridge.admission.hasArrived(barrier) else {
      context.log.debug("retained command ignored: it was handled before", publisher.fields)
      return false
    }
    retained.begin(message, for: address)
    return true
  }

  /// A command has its first outcome. If it is retained, that is stored, after what the engine stores of the outcome:
  /// a command that a crash interrupts is carried out after the next start.
  private func handled(_ message: MQTTReceived, _ address: BluetoothAddress) {
    guard message.retain else { return }
    context.loop.timer(after: .zero) { [weak self] in
      guard let self else { return }
      context.engine.assumeIsolated { $0.storeChanges() }
      retained.handled(message, for: address)
    }
  }

  private func execute(
    _ message: MQTTReceived, _ publisher: DevicePublisher, _ name: String, _ index: Int?
  ) {
    bridge.report.countCommand()
    let profile = publisher.device.profile
    guard let index else {
      let known = profile.properties.filter(\.isWritable).map(\.name).joined(separator: ", ")
      let shown = TopicWord.isValid(name) ? name : Excerpt(name).description
      let reason = "there is no property \(shown); settable: \(known)"
      return reject(
        message, publisher, name, Rejection(reason, CommandPayload.transaction(in: message.payload)))
    }
    let property = profile.properties[index]
    do throws(Rejection) {
      let payload = try CommandPayload(message.payload, for: property)
      let address = ReplyAddress(of: message, topic: publisher.topics.properties[index].result)
      let (id, device) = (publisher.device.id, publisher.device.address)
      let command = Command(
        payload.value, timeToLive: payload.ttl.map { TimeToLive(seconds: $0, from: .now) },
        reply: { [weak self, context] outcome in
          let result = outcome.result(
            requested: payload.value.value, property.codec, transaction: payload.transaction)
          context.reply(result, to: address, atOnce: true)
          self?.handled(message, device)
        })
      context.engine.assumeIsolated { $0.execute(command, on: index, of: id) }
    } catch {
      reject(message, publisher, name, error)
    }
  }

  private func reject(
    _ message: MQTTReceived, _ publisher: DevicePublisher, _ name: String, _ rejection: Rejection
  ) {
    context.log.info("command rejected: \(rejection.reason)", publisher.fields)
    let address = ReplyAddress(of: message, topic: publisher.topics.result(ofProperty: name))
    let result = Outcome.rejected(reason: rejection.reason)
      .result(nil, transaction: rejection.transaction)
    context.reply(result, to: address, atOnce: true)
    handled(message, publisher.device.address)
  }

  // MARK: Get

  func get(_ message: MQTTReceived, _ publisher: DevicePublisher, _ name: String) {
    guard !message.retain, bridge.isResponsible(for: publisher) else { return }
    let transaction = CommandPayload.transaction(in: message.payload)
    guard let index = publisher.device.profile.index(ofPropertyNamed: name) else {
      return reject(message, publisher, name, Rejection("there is no such property", transaction))
    }
    let property = publisher.device.profile.properties[index]
    let address = ReplyAddress(of: message, topic: publisher.topics.properties[index].result)
    let id = publisher.device.id
    context.engine.assumeIsolated { [context] in
      $0.get(index, of: id) { outcome in
        let result = outcome.result(property.codec, transaction: transaction)
        context.reply(result, to: address, atOnce: true)
      }
    }
  }
}
