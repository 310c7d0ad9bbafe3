import Configuration
import GATT
import MQTT

/// What an arriving message is about.
enum Inbound: Sendable, Equatable {
  /// A value for a property, of whose name nothing is known but its length.
  case set(Target, property: String)
  /// A property of a device is to be read.
  case get(DeviceID, property: String)
  /// `devices`, `device/add` …; the verb may be unknown, its words are valid.
  case request(verb: String)
  /// An answer under this gateway's id: another gateway that has it would give one.
  case response
  /// What a gateway's state is, this one's too.
  case bridgeState(GatewayID)
  /// The info under this gateway's id.
  case bridgeInfo
  /// Who holds a device.
  case deviceInfo(DeviceID)
  case deviceAvailability(DeviceID)
}

/// Whom a command is for.
enum Target: Sendable, Equatable {
  case device(DeviceID)
  case area(AreaName)
  case all

  var isGroup: Bool {
    if case .device = self { false } else { true }
  }
}

extension TopicMap {
  // MARK: Filters

  /// What brings the requests to the gateway itself.
  var requests: TopicFilter { topicFilter("\(bridge)/request/#") }

  /// What brings the commands for several devices at once.
  var groupCommands: [TopicFilter] {
    [topicFilter("\(base)/all/+/set"), topicFilter("\(base)/area/+/+/set")]
  }

  /// Where barriers arrive while requests are not subscribed to.
  var barriers: TopicFilter { TopicFilter(bridgeRequest(Verb.health.rawValue)) }

  /// What shows whether another gateway uses this one's id, and which gateways are online.
  var ownership: [TopicFilter] {
    [
      topicFilter("\(base)/bridge/+/state"), TopicFilter(bridgeInfo),
      TopicFilter(bridgeResponse(to: Verb.health.rawValue)),
    ]
  }

  // MARK: Meaning

  /// What a message on `topic` is about; nil when it is none of this gateway's business.
  func inbound(_ topic: String) -> Inbound? {
    guard let rest = rest(of: topic[...], after: basePrefix) else { return nil }
    let levels = rest.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { String(Substring($0)) }
    switch levels.count {
    case 2 where levels[1] == "info": return (try? DeviceID(levels[0])).map(Inbound.deviceInfo)
    case 2 where levels[1] == "availability":
      return (try? DeviceID(levels[0])).map(Inbound.deviceAvailability)
    case 3 where levels[0] == "bridge" && levels[2] == "state":
      return GatewayID(levels[1]).map(Inbound.bridgeState)
    case 3 where levels[2] == "get" && isProperty(levels[1]):
      return (try? DeviceID(levels[0])).map { .get($0, property: levels[1]) }
    case 3 where levels[2] == "set" && isProperty(levels[1]):
      let target = levels[0] == "all" ? Target.all : (try? DeviceID(levels[0])).map(Target.device)
      return target.map { .set($0, property: levels[1]) }
    case 4 where levels[0] == "area" && levels[3] == "set" && isProperty(levels[2]):
      return AreaName(levels[1]).map { .set(.area($0), property: levels[2]) }
    case _: return ofTheBridge(topic)
    }
  }

  private func ofTheBridge(_ topic: String) -> Inbound? {
    switch rest(of: topic[...], after: bridgePrefix) {
    case "info": return .bridgeInfo
    case "response/\(Verb.health.rawValue)": return .response
    case let rest?:
      guard let verb = self.rest(of: rest, after: "request/") else { return nil }
      let words = verb.split(separator: "/", omittingEmptySubsequences: false)
      // No longer than a word either: the topic of its answer has to be one.
      let isVerb = verb.utf8.count <= TopicWord.longest && words.allSatisfy(TopicWord.isValid)
      return isVerb ? .request(verb: String(verb)) : nil
    case nil: return nil
    }
  }

  /// In bytes: a command for all devices is answered by each, on a topic that has the property's name in it.
  private static let longestProperty = 256

  private func isProperty(_ name: String) -> Bool { name.utf8.count <= Self.longestProperty }

  /// Compared byte by byte, as the broker does: `String` takes different spellings of é for the same.
  private func rest(of topic: Substring, after prefix: String) -> Substring? {
    guard topic.utf8.starts(with: prefix.utf8) else { return nil }
    return Substring(topic.utf8.dropFirst(prefix.utf8.count))
  }
}
