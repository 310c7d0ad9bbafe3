import Configuration
import Devices
import GATT
import MQTT

/// The topics of the gateway.
package struct TopicMap: Sendable {
  package let base: String
  package let gateway: GatewayID
  let bridge: String
  private let basePrefix: String
  private let bridgePrefix: String

  /// - Parameter base: `mqtt.base_topic`, validated.
  package init(base: String, gateway: GatewayID) {
    self.base = base
    self.gateway = gateway
    bridge = "\(base)/bridge/\(gateway)"
    basePrefix = "\(base)/"
    bridgePrefix = "\(bridge)/"
  }

  // MARK: Outbound

  package var bridgeState: TopicName { topicName("\(bridge)/state") }
  package var bridgeInfo: TopicName { topicName("\(bridge)/info") }
  var bridgeDevices: TopicName { topicName("\(bridge)/devices") }
  /// Where all gateways claim the events that they hear. One topic, as the first claim counts.
  var claims: TopicName { topicName("\(base)/bridge/claims") }

  /// Where requests for `verb` arrive.
  package func bridgeRequest(_ verb: String) -> TopicName { topicName("\(bridge)/request/\(verb)") }

  // Requests that entities of Home Assistant send.
  package var changeOptionsRequest: TopicName { bridgeRequest(ChangeOptions.verb) }
  package var identifyRequest: TopicName { bridgeRequest(IdentifyDevice.verb) }
  package var reconnectRequest: TopicName { bridgeRequest(ReconnectDevice.verb) }
  package var permitJoiningRequest: TopicName { bridgeRequest(PermitJoining.verb) }
  package var scanRequest: TopicName { bridgeRequest(Scan.verb) }
  package var resetAdapterRequest: TopicName { bridgeRequest(ResetAdapter.verb) }

  /// Where responses to `verb` are published.
  package func bridgeResponse(to verb: String) -> TopicName { topicName("\(bridge)/response/\(verb)") }

  /// The topics of a device. Keep the result: it builds many strings.
  package func topics(of device: DeviceID, _ profile: Profile) -> DeviceTopics {
    DeviceTopics(prefix: "\(base)/\(device)", profile: profile)
  }

  /// The gateway whose state is published on `topic`.
  package func gateway(ofState topic: String) -> GatewayID? {
    if case .bridgeState(let gateway) = inbound(topic) { gateway } else { nil }
  }

  // MARK: Filters

  /// The profiles and entries that all gateways share.
  var fleetConfiguration: TopicFilter { topicFilter("\(base)/fleet/config") }

  /// Requests to this gateway.
  var requests: TopicFilter { topicFilter("\(bridge)/request/#") }

  /// Commands for several devices.
  var groupCommands: [TopicFilter] {
    [topicFilter("\(base)/all/+/set"), topicFilter("\(base)/area/+/+/set")]
  }

  /// Where barriers arrive while requests are not subscribed to.
  var barriers: TopicFilter { TopicFilter(bridgeRequest(ReportHealth.verb)) }

  /// Shows whether another gateway uses this one's id, and which gateways are online.
  var gateways: [TopicFilter] {
    [
      topicFilter("\(base)/bridge/+/state"), TopicFilter(bridgeInfo),
      TopicFilter(bridgeResponse(to: ReportHealth.verb)), TopicFilter(claims),
    ]
  }

  /// The `info` of every device of every gateway.
  var deviceInfos: TopicFilter { topicFilter("\(base)/+/info") }

  // MARK: Inbound

  /// The most bytes of a payload, except of Home Assistant's documents and the fleet's configuration.
  package static let longestPayload = 64 << 10
  /// The most bytes of a document of Home Assistant.
  private static let longestDocument = 256 << 10

  /// A longer payload is cut behind one more byte, and then refused.
  func longestPayload(on topic: TopicName) -> Int {
    if topic.string == fleetConfiguration.string { return FleetConfiguration.largest }
    return topic.hasPrefix(basePrefix) ? Self.longestPayload : Self.longestDocument
  }

  /// The meaning of a received topic; nil: it is none of the gateway's.
  func inbound(_ topic: String) -> Inbound? {
    guard let rest = rest(of: topic[...], after: basePrefix) else { return nil }
    let levels = rest.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { String(Substring($0)) }
    let device = try? DeviceID(levels[0])
    switch levels.count {
    case 2 where levels == ["fleet", "config"]: return .fleetConfiguration
    case 2 where levels == ["bridge", "claims"]: return .claim
    case 2 where levels[1] == "info": return device.map(Inbound.deviceInfo)
    case 2 where levels[1] == "availability": return device.map(Inbound.deviceAvailability)
    case 3 where levels[0] == "bridge" && levels[2] == "state":
      return GatewayID(levels[1]).map(Inbound.bridgeState)
    case 3 where levels[2] == "get" && fits(levels[1]):
      return device.map { .get($0, property: levels[1]) }
    case 3 where levels[2] == "set" && fits(levels[1]):
      let target = levels[0] == "all" ? Target.all : device.map(Target.device)
      return target.map { .set($0, property: levels[1]) }
    case 4 where levels[0] == "area" && levels[3] == "set" && fits(levels[1]) && fits(levels[2]):
      return AreaName(levels[1]).map { .set(.area($0), property: levels[2]) }
    case 4 where levels[1] == "values" && levels[3] == "get" && fits(levels[2]):
      return device.map { .get($0, property: NamedValue.prefix + levels[2]) }
    case 4 where levels[1] == "values" && levels[3] == "set" && fits(levels[2]):
      return device.map { .set(.device($0), property: NamedValue.prefix + levels[2]) }
    case _: return ofTheBridge(topic)
    }
  }

  private func ofTheBridge(_ topic: String) -> Inbound? {
    switch rest(of: topic[...], after: bridgePrefix) {
    case "info": return .bridgeInfo
    case "response/\(ReportHealth.verb)": return .response
    case let rest?:
      guard let verb = self.rest(of: rest, after: "request/") else { return nil }
      let words = verb.split(separator: "/", omittingEmptySubsequences: false)
      // The topic of the response contains it.
      let isVerb = verb.utf8.count <= TopicWord.longest && words.allSatisfy(TopicWord.isValid)
      return isVerb ? .request(verb: String(verb)) : nil
    case nil: return nil
    }
  }

  /// The most bytes of a name: result topics contain the name of a property, and stored commands that of an area.
  private static let longestName = 256

  private func fits(_ text: String) -> Bool { text.utf8.count <= Self.longestName }

  /// Compared byte by byte, as the broker does: to `String` different encodings of é are equal.
  private func rest(of topic: Substring, after prefix: String) -> Substring? {
    guard topic.utf8.starts(with: prefix.utf8) else { return nil }
    return Substring(topic.utf8.dropFirst(prefix.utf8.count))
  }
}

/// The topics of one device.
package struct DeviceTopics: Sendable, Equatable {
  /// The topics of one property.
  package struct Topics: Sendable, Equatable {
    package let value: TopicName
    package let set: TopicName
    package let result: TopicName
    /// A picture of bits as SVG; nil for other values.
    package let image: TopicName?
    /// The device's.
    let readings: TopicName

    /// The retained ones.
    var states: [TopicName] { [value] + (image.map { [$0] } ?? []) }
  }

  /// The commands for the device.
  let commands: [TopicFilter]
  /// The topics that tell which gateway owns the device.
  var presence: [TopicFilter] { [TopicFilter(info), TopicFilter(availability)] }
  package let availability: TopicName
  package let readings: TopicName
  package let info: TopicName
  /// New rows of the data log.
  let log: TopicName
  private let profileProperties: [Property]
  private let prefix: String

  init(prefix: String, profile: Profile) {
    (self.prefix, profileProperties) = (prefix, profile.properties)
    commands = ["+/set", "+/get", "values/+/set", "values/+/get"].map { topicFilter("\(prefix)/\($0)") }
    availability = topicName("\(prefix)/availability")
    readings = topicName("\(prefix)/readings")
    info = topicName("\(prefix)/info")
    log = topicName("\(prefix)/log")
  }

  /// The topics of a property, or of a value that the device's program names itself.
  package func topics(of property: Property) -> Topics {
    let value = "\(prefix)/\(property.name)"
    return Topics(
      value: topicName(value), set: topicName("\(value)/set"), result: topicName("\(value)/result"),
      image: property.codec.isPicture ? topicName("\(value)/image") : nil, readings: readings)
  }

  /// The topics of the profile's properties, in their order.
  package var properties: [Topics] { profileProperties.map(topics) }

  /// The retained topics, `info` last: when that is cleared, all are.
  var states: [TopicName] { [availability] + properties.flatMap(\.states) + [info] }

  /// The topics that may be retained of properties of these names, which the profile may lack.
  func states(of names: Set<PropertyName>) -> [TopicName] {
    names.map(\.description).sorted().flatMap { name in
      [topicName("\(prefix)/\(name)"), topicName("\(prefix)/\(name)/image")]
    }
  }

  /// The result topic of a property, even one that the profile does not have; nil where there can be none, as of a
  /// command in a damaged record.
  func result(ofProperty property: String) -> TopicName? { TopicName("\(prefix)/\(property)/result") }
}

/// A topic made of validated parts.
package func topicName(_ text: String) -> TopicName {
  guard let name = TopicName(text) else { preconditionFailure("not a topic: \(text)") }
  return name
}

package func topicFilter(_ text: String) -> TopicFilter {
  guard let filter = TopicFilter(text) else { preconditionFailure("not a topic filter: \(text)") }
  return filter
}

/// The meaning of a topic that a message has arrived on.
enum Inbound: Sendable, Equatable {
  /// A value for a property; of the name only the length is checked.
  case set(Target, property: String)
  /// A request to read a property.
  case get(DeviceID, property: String)
  /// `devices`, `device/add` …; the verb may be unknown, its words are valid.
  case request(verb: String)
  /// A response under this gateway's id; another gateway with that id sends one.
  case response
  /// The state of a gateway, this one included.
  case bridgeState(GatewayID)
  /// The info under this gateway's id.
  case bridgeInfo
  /// A gateway has heard an event.
  case claim
  /// What all gateways of a fleet share.
  case fleetConfiguration
  /// Which gateway owns a device.
  case deviceInfo(DeviceID)
  case deviceAvailability(DeviceID)
}

/// The devices that a command is for.
enum Target: Sendable, Equatable {
  case device(DeviceID)
  case area(AreaName)
  case all

  var isGroup: Bool {
    if case .device = self { false } else { true }
  }
}
