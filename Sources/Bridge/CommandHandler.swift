import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT
import Store

/// Turns messages on `…/set` and `…/get` topics into commands, and their outcomes into results.
@LoopActor final class CommandHandler {
  /// Before groups are subscribed to again: once for devices that become known together.
  private static let groupDelay = Duration.milliseconds(250)

  private let context: BridgeContext
  private unowned let bridge: Bridge
  private var retained: RetainedCommands
  /// Arrives after the retained commands for all subscriptions so far.
  private var barrier: UInt64 = 0
  private var isResubscribing = false

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
    loop.timer(after: Self.groupDelay) { [weak self] in
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
  func forget(_ device: DeviceDescription) { retained.forget(device.address) }

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
      var refusal: String?
      if message.retain {
        switch decide(retained: message, publisher, known) {
        case .execute: break
        case .reject(let reason): refusal = reason
        case .ignore:
          context.log.debug("retained command ignored", publisher.fields)
          continue
        }
      }
      guard bridge.isResponsible(for: publisher) else {
        // What another gateway carries out is not repeated here later.
        handled(message, publisher.device.address)
        continue
      }
      if let refusal {
        let sender = Sender(of: message, transaction: Command.transaction(in: message.payload))
        reject(message, publisher, property, refusal, sender)
      } else {
        execute(message, publisher, property, known?.codec)
      }
    }
  }

  private func decide(
    retained message: MQTTReceived, _ publisher: DevicePublisher, _ property: Property?
  ) -> RetainedCommands.Decision {
    retained.decide(
      message, for: publisher.device.address, property, isMQTT5: context.isMQTT5,
      isNew: bridge.admission.hasArrived(barrier))
  }

  /// A command has its first outcome. If it is retained, that is stored, after what the engine stores of the outcome:
  /// a command that a crash interrupts is carried out after the next start.
  private func handled(_ message: MQTTReceived, _ address: BluetoothAddress) {
    guard message.retain else { return }
    loop.timer(after: .zero) { [weak self] in
      guard let self else { return }
      context.engine.storeChanges()
      retained.handled(message, for: address)
    }
  }

  private func execute(
    _ message: MQTTReceived, _ publisher: DevicePublisher, _ property: String, _ codec: Codec?
  ) {
    bridge.report.countCommand()
    let command: Command
    do throws(Rejection) {
      command = try Command(message.payload, publisher.device.id, property, codec, from: Sender(of: message))
    } catch {
      let sender = Sender(of: message, transaction: error.transaction)
      return reject(message, publisher, property, error.reason, sender)
    }
    let sender = Sender(command.sender)
    let reply: CommandReply = { [weak self] result in
      publisher.publish(result, for: sender)
      self?.handled(message, publisher.device.address)
    }
    do throws(RequestError) {
      try context.engine.execute(command, reply: reply)
    } catch {
      reject(message, publisher, property, error.reason, sender)
    }
  }

  private func reject(
    _ message: MQTTReceived, _ publisher: DevicePublisher, _ property: String, _ reason: String,
    _ sender: Sender
  ) {
    context.log.info("command rejected: \(reason)", publisher.fields)
    publisher.publish(CommandResult(property, nil, .rejected(reason: reason)), for: sender)
    handled(message, publisher.device.address)
  }

  // MARK: Get

  func get(_ message: MQTTReceived, _ publisher: DevicePublisher, _ property: String) {
    guard !message.retain, bridge.isResponsible(for: publisher) else { return }
    let sender = Sender(of: message, transaction: Command.transaction(in: message.payload))
    let id = publisher.device.id
    do throws(RequestError) {
      try context.engine.get(property, of: id) { publisher.publish($0, for: sender) }
    } catch {
      reject(message, publisher, property, error.reason, sender)
    }
  }
}

extension Command {
  /// In bytes.
  static let longestPayload = 4096
  /// From a second to a day.
  static let ttls = 1...86_400

  /// From a message on a `…/set` topic: `2000`, `Hello`, or `{"value":2000,"ttl":60,"transaction":"a1"}`.
  /// - Parameters:
  ///   - codec: the property's; nil: the device has no such property.
  ///   - sender: the transaction is added.
  init(
    _ payload: [UInt8], _ device: DeviceID, _ property: String, _ codec: Codec?, from sender: Sender
  ) throws(Rejection) {
    var sender = sender
    guard payload.count <= Self.longestPayload else {
      throw Rejection("the payload has more than \(Self.longestPayload) bytes")
    }
    let json = try? JSONParser.parse(payload)
    if case .object(let object) = json, Self.isLongForm(object, codec) {
      sender.transaction = try Sender.transaction(object)
      self.init(
        device, property, try Self.value(object, sender.transaction),
        timeToLive: try Self.ttl(object["ttl"], sender.transaction), sender: sender.json)
      return
    }
    let value: JSONValue
    if let json, case .string = json {
      value = json
    } else if let text = String(validating: payload, as: UTF8.self) {
      value = .string(text)
    } else {
      throw Rejection("\(Excerpt(payload)) is not \(codec?.valueDescription ?? "a text")")
    }
    self.init(device, property, value, sender: sender.json)
  }

  /// Whether the object is `{"value":…,"ttl":…}`, and not a record itself, of which no field is an object.
  private static func isLongForm(_ object: JSONObject, _ codec: Codec?) -> Bool {
    guard let codec, case .record = codec.description else { return true }
    if case .object = object["value"] { return true }
    return object["value"] != nil && codec.fields?.contains("value") != true
  }

  private static func value(_ object: JSONObject, _ transaction: String?) throws(Rejection) -> JSONValue {
    let known = ["value", "ttl", "transaction"]
    if let unknown = object.names.first(where: { !known.contains($0) }) {
      throw Rejection("unknown key \(Excerpt(unknown)); allowed: value, ttl, transaction", transaction)
    }
    guard let value = object["value"] else { throw Rejection("the key value is missing", transaction) }
    return value
  }

  private static func ttl(_ json: JSONValue?, _ transaction: String?) throws(Rejection) -> Int? {
    switch json {
    case nil: return nil
    case .integer(let seconds) where ttls.contains(seconds): return seconds
    case .some(let other):
      let range = "\(ttls.lowerBound)…\(ttls.upperBound)"
      throw Rejection("ttl: \(Excerpt(other.bytes)) is not a whole number of seconds, \(range)", transaction)
    }
  }

  /// The transaction of a command whose payload is not used.
  static func transaction(in payload: [UInt8]) -> String? {
    guard payload.count <= longestPayload, case .object(let object) = try? JSONParser.parse(payload) else {
      return nil
    }
    return try? Sender.transaction(object)
  }
}
