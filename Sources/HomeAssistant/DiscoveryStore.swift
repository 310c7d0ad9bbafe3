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
  private var announced: [Discovery.Subject: Announced] = [:]
  /// What was removed while Home Assistant may have been away, by its discovery topic.
  private(set) var removals: [String: Removal] = [:]

  init(_ section: StateSection) {
    self.section = section
    for (key, bytes) in section.takeRecords() {
      guard let json = try? JSONParser.parse(bytes) else { continue }
      if let subject = key == Self.gatewayKey ? .gateway : BluetoothAddress(key).map(Discovery.Subject.device)
      {
        announced[subject] = json["announced"].flatMap(Announced.init)
      } else if key.hasPrefix(Self.removalPrefix), removals.count < Self.mostRemovals {
        let topic = String(key.dropFirst(Self.removalPrefix.count))
        removals[topic] = Removal(key: topic, json)
      }
    }
  }

  /// What was announced; nil: nothing.
  subscript(subject: Discovery.Subject) -> Announced? {
    get { announced[subject] }
    set {
      guard newValue != announced[subject] else { return }
      announced[subject] = newValue
      let key =
        switch subject {
        case .gateway: Self.gatewayKey
        case .device(let address): address.description
        }
      section.put(key, newValue.map { JSONValue.object(["announced": $0.json]).bytes })
    }
  }

  /// What was announced under another prefix than `prefix`; nil: under any.
  func announced(notUnder prefix: String?) -> [Discovery.Subject] {
    announced.filter { $0.value.prefix != prefix }.map(\.key)
  }

  /// - Returns: whether there was room for it.
  @discardableResult
  func add(_ removal: Removal) -> Bool {
    let topic = removal.topic.string
    guard removals[topic] != nil || removals.count < Self.mostRemovals else { return false }
    removals[topic] = removal
    section.put(Self.removalPrefix + topic, removal.announced.json.bytes)
    return true
  }

  func discardRemoval(_ topic: String) {
    if removals.removeValue(forKey: topic) != nil { section.put(Self.removalPrefix + topic, nil) }
  }
}
