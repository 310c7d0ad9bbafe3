import Configuration
import GATT
import JSON
import MQTT
import Store

/// The last retained command of each topic for each device: the broker sends it at every connection. Stored when it is
/// handled.
struct RetainedCommands {
  /// Topics kept for a device; the oldest is dropped first.
  private static let capacity = 64

  private struct Entry {
    let topic: String
    let digest: Int
    /// Whether its first outcome is known.
    var isHandled: Bool
  }

  private let section: StateSection
  private var commands: [BluetoothAddress: [Entry]] = [:]

  init(_ section: StateSection) {
    self.section = section
    for (key, bytes) in section.records {
      guard let address = BluetoothAddress(key), case .object(let object) = try? JSONParser.parse(bytes)
      else {
        continue
      }
      commands[address] = object.members.suffix(Self.capacity).compactMap { member in
        guard case .integer(let digest) = member.value else { return nil }
        return Entry(topic: member.name, digest: digest, isHandled: true)
      }
    }
  }

  /// Whether the command differs from the last one of its topic.
  func isNew(_ message: MQTTReceived, for address: BluetoothAddress) -> Bool {
    index(of: message, for: address) == nil
  }

  /// The command takes the place of the last one of its topic, and is not handled yet.
  mutating func begin(_ message: MQTTReceived, for address: BluetoothAddress) {
    let topic = message.topic.string
    let others = (commands[address] ?? []).filter { $0.topic != topic }
    let entry = Entry(topic: topic, digest: Self.digest(message.payload), isHandled: false)
    store(others.suffix(Self.capacity - 1) + [entry], for: address)
  }

  /// The command is not repeated after the next start; no effect if another one has taken its place.
  mutating func handled(_ message: MQTTReceived, for address: BluetoothAddress) {
    guard var known = commands[address], let index = index(of: message, for: address), !known[index].isHandled
    else { return }
    known[index].isHandled = true
    store(known, for: address)
  }

  private func index(of message: MQTTReceived, for address: BluetoothAddress) -> Int? {
    let (topic, digest) = (message.topic.string, Self.digest(message.payload))
    return commands[address]?.firstIndex { $0.topic == topic && $0.digest == digest }
  }

  /// The command of this topic was deleted.
  mutating func remove(_ topic: TopicName, for address: BluetoothAddress) {
    guard let known = commands[address], known.contains(where: { $0.topic == topic.string }) else { return }
    store(known.filter { $0.topic != topic.string }, for: address)
  }

  private mutating func store(_ known: [Entry], for address: BluetoothAddress) {
    guard !known.isEmpty else { return forget(address) }
    commands[address] = known
    let handled = known.filter(\.isHandled)
    let json = JSONObject(handled.map { JSONObject.Member(name: $0.topic, value: .integer($0.digest)) })
    section.put(address.description, handled.isEmpty ? nil : JSONValue.object(json).bytes)
  }

  mutating func forget(_ address: BluetoothAddress) {
    guard commands.removeValue(forKey: address) != nil else { return }
    section.put(address.description, nil)
  }

  static func digest(_ payload: [UInt8]) -> Int { Int(truncatingIfNeeded: Digest.of(payload)) }
}
