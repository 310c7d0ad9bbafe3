import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT
import Store

/// Turns messages on `…/set` and `…/get` topics into commands, and their outcomes into results.
@LoopActor final class CommandHandler {
  /// The wait before groups are subscribed to again: once for devices that become known together.
  private static let groupDelay = Duration.milliseconds(250)

  private let context: BridgeContext
  private let publishers: DevicePublishers
  private let ownership: OwnershipRunner
  private let report: BridgeReport
  private var retained: RetainedCommands
  /// Until groups are subscribed to again.
  private var groupTimer: LoopTimer?

  init(
    _ publishers: DevicePublishers, _ ownership: OwnershipRunner, _ report: BridgeReport,
    _ context: BridgeContext,
    _ section: StateSection
  ) {
    self.publishers = publishers
    self.ownership = ownership
    self.report = report
    self.context = context
    retained = RetainedCommands(section)
  }

  // MARK: Subscriptions

  func admitted() {
    for publisher in publishers.all { subscribeOwn(publisher) }
    subscribeGroups()
  }

  func disconnected() {
    for publisher in publishers.all { unsubscribe(publisher) }
    context.mqtt.unsubscribe(context.topics.groupCommands)
  }

  func subscribe(_ publisher: DevicePublisher) {
    subscribeOwn(publisher)
    ownership.handle { $0.commandsSubscribed() }
    // The broker then sends the retained commands to groups again, to which the other devices do not react again.
    guard groupTimer?.isPending != true else { return }
    groupTimer = loop.timer(after: Self.groupDelay) { [weak self] in
      if let self, ownership.isAdmitted { subscribeGroups() }
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
    ownership.handle { $0.commandsSubscribed() }
  }

  // MARK: Set

  func set(
    _ message: MQTTReceived, _ targets: [DevicePublisher], isGroup: Bool, _ property: String
  ) {
    context.log.debug(
      "received", ["topic": message.topic, "payload": Excerpt.beginning(of: message.payload)])
    // The broker sends it again at the next start.
    if message.retain, context.isStopping { return }
    let payload = CommandPayload(message.payload)
    for publisher in targets {
      let known = publisher.device.setter(named: property)
      if isGroup, known?.isWritable != true || !publisher.device.mayOffer(property) { continue }
      if !context.isMQTT5, retained.noteDeletion(message, for: publisher.device.address, known) { continue }
      var refusal: String?
      if message.retain {
        let isNew = ownership.state.retainedCommandsHaveArrived
        switch retained.decide(
          message, for: publisher.device.address, known, isMQTT5: context.isMQTT5, isNew: isNew)
        {
        case .execute: break
        case .reject(let reason): refusal = reason
        case .ignore:
          context.log.debug("retained command ignored", publisher.fields)
          continue
        }
      }
      guard ownership.isResponsible(for: publisher) else {
        // What another gateway carries out is not repeated here later.
        retained.handled(message, for: publisher.device.address)
        continue
      }
      report.countCommand()
      if let refusal {
        reject(message, publisher, property, refusal, Sender(of: message, transaction: payload.transaction))
      } else {
        execute(message, payload, publisher, property, known?.codec)
      }
    }
  }

  private func execute(
    _ message: MQTTReceived, _ payload: CommandPayload, _ publisher: DevicePublisher, _ property: String,
    _ codec: Codec?
  ) {
    var sender = Sender(of: message)
    do throws(RequestError) {
      let command = try Command(payload, publisher.device.id, property, codec, from: &sender)
      try context.engine.execute(command) { [weak self, sender] result in
        publisher.publish(result, for: sender)
        self?.retained.handled(message, for: publisher.device.address)
      }
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
    retained.handled(message, for: publisher.device.address)
  }

  // MARK: Get

  func get(_ message: MQTTReceived, _ publisher: DevicePublisher, _ property: String) {
    guard !message.retain, ownership.isResponsible(for: publisher) else { return }
    var sender = Sender(of: message)
    do throws(RequestError) {
      try CommandPayload(message.payload).checkGet(from: &sender)
      try context.engine.get(property, of: publisher.device.id) { [sender] in
        publisher.publish($0, for: sender)
      }
    } catch {
      reject(message, publisher, property, error.reason, sender)
    }
  }
}
