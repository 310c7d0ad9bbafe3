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

  func set(
    _ message: MQTTReceived, _ targets: [DevicePublisher], isGroup: Bool, _ property: String
  ) {
    context.log.debug(
      "received", ["topic": message.topic, "payload": Excerpt.beginning(of: message.payload)])
    // The broker sends it again at the next start.
    if message.retain, bridge.isStopping { return }
    for publisher in targets {
      let known =
        property.hasPrefix(NamedValue.prefix)
        ? publisher.device.valueSetter : publisher.device.profile.property(named: property)
      if isGroup, known?.isWritable != true || !publisher.device.mayOffer(property) { continue }
      if message.retain, !mustExecute(retained: message, publisher, property, known) { continue }
      guard bridge.isResponsible(for: publisher) else {
        // What another gateway carries out is not repeated here later.
        handled(message, publisher.device.address)
        continue
      }
      execute(message, publisher, property, known?.codec)
    }
  }

  /// Whether a retained command is to be executed: it has begun then. Otherwise it is rejected here, or ignored.
  private func mustExecute(
    retained message: MQTTReceived, _ publisher: DevicePublisher, _ name: String, _ property: Property?
  ) -> Bool {
    // The retained command was deleted: an equal one that is sent later is a new command.
    if message.payload.isEmpty {
      retained.remove(message.topic, for: publisher.device.address)
      return false
    }
    // It cannot be set: `execute` rejects it when it is newly published. The copies that the broker sends on every
    // connection come before the barrier.
    guard let property, property.isWritable else { return bridge.admission.hasArrived(barrier) }
    if !context.isMQTT5 || property.kind == .event {
      let isNew = rejectedTopics[publisher.device.id, default: []].insert(message.topic.string).inserted
      if isNew, bridge.isResponsible(for: publisher) {
        let reason =
          context.isMQTT5 ? "a retained command for an event is not carried out" : Self.retainedReason
        let sender = Sender(of: message, transaction: CommandPayload.transaction(in: message.payload))
        reject(message, publisher, name, reason, sender)
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
    _ message: MQTTReceived, _ publisher: DevicePublisher, _ property: String, _ codec: Codec?
  ) {
    bridge.report.countCommand()
    let payload: CommandPayload
    do throws(Rejection) {
      payload = try CommandPayload(message.payload, codec)
    } catch {
      let sender = Sender(of: message, transaction: error.transaction)
      return reject(message, publisher, property, error.reason, sender)
    }
    let sender = Sender(of: message, transaction: payload.transaction)
    let command = Command(
      publisher.device.id, property, payload.value, timeToLive: payload.ttl, sender: sender.json)
    let reply: CommandReply = { [weak self] result in
      guard let self else { return }
      publish(result, of: publisher, for: sender)
      handled(message, publisher.device.address)
    }
    do throws(RequestError) {
      try context.engine.call { engine throws(RequestError) in try engine.execute(command, reply: reply) }
    } catch {
      reject(message, publisher, property, error.reason, sender)
    }
  }

  private func reject(
    _ message: MQTTReceived, _ publisher: DevicePublisher, _ property: String, _ reason: String,
    _ sender: Sender
  ) {
    context.log.info("command rejected: \(reason)", publisher.fields)
    publish(CommandResult(property, nil, .rejected(reason: reason)), of: publisher, for: sender)
    handled(message, publisher.device.address)
  }

  private func publish(_ result: CommandResult, of publisher: DevicePublisher, for sender: Sender) {
    context.publish(result, on: publisher.topics.result(ofProperty: result.property), for: sender)
  }

  // MARK: Get

  func get(_ message: MQTTReceived, _ publisher: DevicePublisher, _ property: String) {
    guard !message.retain, bridge.isResponsible(for: publisher) else { return }
    let sender = Sender(of: message, transaction: CommandPayload.transaction(in: message.payload))
    let id = publisher.device.id
    do throws(RequestError) {
      try context.engine.call { engine throws(RequestError) in
        try engine.get(property, of: id) { [weak self] in
          self?.publish($0, of: publisher, for: sender)
        }
      }
    } catch {
      reject(message, publisher, property, error.reason, sender)
    }
  }
}
