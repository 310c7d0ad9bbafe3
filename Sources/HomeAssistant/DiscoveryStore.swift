import EventLoop
import GATT
import JSON
import Store

/// What was announced to Home Assistant, kept over restarts so that it can be removed.
@LoopActor final class DiscoveryStore {
  /// The maximum of pending removals; further ones are not repeated at Home Assistant's next start.
  static let mostRemovals = 1024
  private static let gatewayKey = "gateway"
  private static let removalPrefix = "removal/"

  private let section: StateSection
  private var devices: [BluetoothAddress: Announced] = [:]
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
        devices[address] = json["announced"].flatMap(Announced.init)
      } else if key.hasPrefix(Self.removalPrefix), removals.count < Self.mostRemovals {
        let topic = String(key.dropFirst(Self.removalPrefix.count))
        removals[topic] = Removal(key: topic, bytes: bytes)
      }
    }
  }

  /// What was announced of a device; nil: nothing.
  subscript(address: BluetoothAddress) -> Announced? {
    get { devices[address] }
    set {
      guard newValue != devices[address] else { return }
      devices[address] = newValue
      put(newValue, address.description)
    }
  }

  private func put(_ announced: Announced?, _ key: String) {
    section.put(key, announced.map { JSONValue.object(["announced": $0.json]).bytes })
  }

  /// The devices that were announced under another prefix than `prefix`; nil: under any.
  func announced(notUnder prefix: String?) -> [BluetoothAddress] {
    devices.filter { $0.value.prefix != prefix }.map(\.key)
  }

  func setGateway(_ announced: Announced?) {
    guard announced != announcedGateway else { return }
    announcedGateway = announced
    put(announced, Self.gatewayKey)
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
