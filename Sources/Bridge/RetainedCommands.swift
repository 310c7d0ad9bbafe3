import Configuration
import EventLoop
import GATT
import JSON
import MQTT
import Store

/// Decides which retained commands are carried out: the broker sends the last of each topic at every connection. A
/// command is stored with its first outcome, also if that is `pending`.
@LoopActor struct RetainedCommands {
  enum Decision: Equatable {
    case execute
    case reject(reason: String)
    case ignore
  }

  /// Topics kept for a device; the oldest is dropped first.
  private static let capacity = 64

  private struct Entry {
    let topic: String
    let digest: Int
    /// Whether the first outcome of the command is known.
    var isHandled: Bool
  }

  private let section: StateSection
  private var commands: [BluetoothAddress: [Entry]] = [:]
  /// The topics and digests of commands that were rejected: copies that the broker, or a bridge, sends later are not answered again.
  private var rejected: [BluetoothAddress: [String: Int]] = [:]

  init(_ section: StateSection) {
    self.section = section
    for (key, bytes) in section.takeRecords() {
      guard let address = BluetoothAddress(key), case .object(let object) = try? JSONParser.parse(bytes)
      else { continue }
      commands[address] = object.members.suffix(Self.capacity).compactMap { member in
        member.value.integer.map { Entry(topic: member.name, digest: $0, isHandled: true) }
      }
    }
  }

  /// A retained command for a device has arrived.
  /// - Parameters:
  ///   - property: nil: the device has no such property.
  ///   - isNew: whether it was published just now, as far as is known: copies that the broker sends on every connection come before.
  mutating func decide(
    _ message: MQTTReceived, for address: BluetoothAddress, _ property: Property?, isMQTT5: Bool, isNew: Bool
  ) -> Decision {
    // The retained command was deleted: an equal one that is sent later is a new command.
    if message.payload.isEmpty {
      remove(message.topic, for: address)
      rejected[address]?[message.topic.string] = nil
      return .ignore
    }
    // A property that cannot be set: the command is refused like any other.
    guard let property, property.isWritable else {
      return isNew && noteRejected(message, for: address, isNew: isNew) ? .execute : .ignore
    }
    if !isMQTT5 || property.kind == .event {
      guard noteRejected(message, for: address, isNew: isNew) else { return .ignore }
      return .reject(
        reason: isMQTT5
          ? "a retained command for an event, or a value of a program, is not carried out"
          : "retained commands require MQTT 5: publish it without the retain flag")
    }
    // Also if it looks new: a bridge publishes its copies again whenever it connects, and some brokers send theirs late.
    guard index(of: message, for: address) == nil else { return .ignore }
    begin(message, for: address)
    return .execute
  }

  /// - Returns: whether it was not noted yet: copies are not answered again, also those that a bridge publishes again. Beyond the
  ///   capacity: whether it looks new.
  private mutating func noteRejected(
    _ message: MQTTReceived, for address: BluetoothAddress, isNew: Bool
  ) -> Bool {
    let (topic, digest) = (message.topic.string, Self.digest(message.payload))
    let known = rejected[address, default: [:]]
    guard known[topic] != digest else { return false }
    guard known[topic] != nil || known.count < Self.capacity else { return isNew }
    rejected[address, default: [:]][topic] = digest
    return true
  }

  /// - Returns: whether a message may be the deletion of a retained command: MQTT 3.1.1 does not tell the two apart.
  /// - Parameter property: nil: the device has no such property.
  mutating func noteDeletion(
    _ message: MQTTReceived, for address: BluetoothAddress, _ property: Property?
  ) -> Bool {
    guard !message.retain, message.payload.isEmpty else { return false }
    // Otherwise an empty text is a value.
    return rejected[address]?.removeValue(forKey: message.topic.string) != nil
      || property?.codec.isPlain != true
  }

  /// The command takes the place of the last one of its topic, and is not handled yet.
  private mutating func begin(_ message: MQTTReceived, for address: BluetoothAddress) {
    let topic = message.topic.string
    let others = (commands[address] ?? []).filter { $0.topic != topic }
    let entry = Entry(topic: topic, digest: Self.digest(message.payload), isHandled: false)
    store(others.suffix(Self.capacity - 1) + [entry], for: address)
  }

  /// Stores that a retained command need not be carried out again: it is answered, waits in the record, or is another gateway's.
  /// What it has changed is written before that or with it, so that a command that a crash interrupts is carried out again. No
  /// effect if the message is not retained, or another one has taken its place.
  mutating func handled(_ message: MQTTReceived, for address: BluetoothAddress) {
    guard message.retain, var known = commands[address], let index = index(of: message, for: address),
      !known[index].isHandled
    else { return }
    known[index].isHandled = true
    store(known, for: address)
  }

  private func index(of message: MQTTReceived, for address: BluetoothAddress) -> Int? {
    let (topic, digest) = (message.topic.string, Self.digest(message.payload))
    return commands[address]?.firstIndex { $0.topic == topic && $0.digest == digest }
  }

  /// The command of this topic was deleted.
  private mutating func remove(_ topic: TopicName, for address: BluetoothAddress) {
    guard let known = commands[address], known.contains(where: { $0.topic == topic.string }) else { return }
    store(known.filter { $0.topic != topic.string }, for: address)
  }

  private mutating func store(_ known: [Entry], for address: BluetoothAddress) {
    commands[address] = known.isEmpty ? nil : known
    let handled = known.filter(\.isHandled)
    let json = JSONObject(handled.map { JSONObject.Member(name: $0.topic, value: .integer($0.digest)) })
    section.put(address.description, handled.isEmpty ? nil : JSONValue.object(json).bytes)
  }

  mutating func forget(_ address: BluetoothAddress) {
    rejected[address] = nil
    if commands[address] != nil { store([], for: address) }
  }

  static func digest(_ payload: [UInt8]) -> Int { Int(truncatingIfNeeded: Digest.of(payload)) }
}
