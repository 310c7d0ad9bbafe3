import Configuration
import GATT
import JSON
import Store

/// What was announced to Home Assistant, kept over restarts so that it can be removed.
final class DiscoveryStore: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  struct Record: Equatable {
    /// Nil: nothing.
    var announced: Announced?
    /// A user has deleted the device in Home Assistant: not announced there until it is added again.
    var isDeleted = false
  }

  /// The maximum of pending removals; further ones are not repeated at Home Assistant's next start.
  static let mostRemovals = 1024
  private static let gatewayKey = "gateway"
  private static let removalPrefix = "removal/"

  private let section: StateSection
  private var records: [BluetoothAddress: Record] = [:]
  private(set) var announcedGateway: Announced?
  /// What was removed while Home Assistant may have been away, by its discovery topic.
  private(set) var removals: [String: Removal] = [:]

  init(_ section: StateSection) {
    self.section = section
    for (key, bytes) in section.records {
      guard let json = try? JSONParser.parse(bytes) else { continue }
      if key == Self.gatewayKey {
        announcedGateway = json["announced"].flatMap(Announced.init)
      } else if let address = BluetoothAddress(key) {
        records[address] = Record(
          announced: json["announced"].flatMap(Announced.init), isDeleted: json["deleted"] == .bool(true))
      } else if key.hasPrefix(Self.removalPrefix), removals.count < Self.mostRemovals {
        let topic = String(key.dropFirst(Self.removalPrefix.count))
        removals[topic] = Removal(key: topic, bytes: bytes)
      }
    }
  }

  subscript(address: BluetoothAddress) -> Record {
    get { records[address] ?? Record() }
    set {
      guard newValue != self[address] else { return }
      let isEmpty = newValue == Record()
      records[address] = isEmpty ? nil : newValue
      let json: JSONValue = [
        "announced": newValue.announced?.json, "deleted": newValue.isDeleted ? .bool(true) : nil,
      ]
      section.put(address.description, isEmpty ? nil : json.bytes)
    }
  }

  /// The devices that were announced under another prefix than `prefix`; nil: under any.
  func announced(notUnder prefix: String?) -> [BluetoothAddress] {
    records.filter { $0.value.announced.map { $0.prefix != prefix } == true }.map(\.key)
  }

  func setGateway(_ announced: Announced?) {
    guard announced != announcedGateway else { return }
    announcedGateway = announced
    section.put(Self.gatewayKey, announced.map { JSONValue.object(["announced": $0.json]).bytes })
  }

  func add(_ removal: Removal) {
    let topic = removal.topic.string
    guard removals[topic] != nil || removals.count < Self.mostRemovals else { return }
    removals[topic] = removal
    section.put(Self.removalPrefix + topic, removal.announced.json.bytes)
  }

  func discardRemoval(_ topic: String) {
    if removals.removeValue(forKey: topic) != nil { section.put(Self.removalPrefix + topic, nil) }
  }
}

extension HomeAssistantDiscovery {
  /// The devices that users have deleted in Home Assistant, as a section of the state database has it.
  package static func deletedDevices(_ section: [String: [UInt8]]) -> Set<BluetoothAddress> {
    Set(
      section.compactMap { key, bytes in
        (try? JSONParser.parse(bytes))?["deleted"] == .bool(true) ? BluetoothAddress(key) : nil
      })
  }
}
