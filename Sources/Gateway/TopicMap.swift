import Configuration
import GATT
import MQTT

/// Every topic of the gateway, and what an arriving one means.
struct TopicMap: Sendable {
  let base: String
  let gateway: GatewayID
  let profile: Profile
  let bridge: String
  /// What every topic begins with, and those of this gateway.
  let basePrefix: String
  let bridgePrefix: String

  /// - Parameter base: `mqtt.base_topic`, validated.
  init(base: String, gateway: GatewayID, profile: Profile) {
    self.base = base
    self.gateway = gateway
    self.profile = profile
    bridge = "\(base)/bridge/\(gateway)"
    basePrefix = "\(base)/"
    bridgePrefix = "\(bridge)/"
  }

  // MARK: Outbound

  var bridgeState: TopicName { name("\(bridge)/state") }
  var bridgeInfo: TopicName { name("\(bridge)/info") }
  var bridgeDevices: TopicName { name("\(bridge)/devices") }

  /// Where this gateway is asked for `verb`.
  func bridgeRequest(_ verb: String) -> TopicName { name("\(bridge)/request/\(verb)") }

  /// Where a request is answered when it names no response topic of its own.
  func bridgeResponse(to verb: String) -> TopicName { name("\(bridge)/response/\(verb)") }

  /// The topics of a device. Built once, when the device is first known.
  func topics(of device: DeviceID) -> DeviceTopics {
    DeviceTopics(prefix: "\(base)/\(device)", profile: profile)
  }

  // MARK: Home Assistant

  /// Where Home Assistant is told of a device.
  ///
  /// - Parameters:
  ///   - prefix: `home_assistant.prefix`, validated.
  ///   - object: what it is called there: `[A-Za-z0-9_-]+`.
  static func discovery(prefix: String, object: String) -> TopicName {
    name("\(prefix)/device/\(object)/config")
  }

  /// Where Home Assistant says `online` a few seconds after its start, and `offline` at its end; not retained.
  static func homeAssistantStatus(prefix: String) -> TopicName { name("\(prefix)/status") }
}

/// The topics of one device.
struct DeviceTopics: Sendable, Equatable {
  /// The topics of one property.
  struct Topics: Sendable, Equatable {
    let value: TopicName
    let set: TopicName
    let result: TopicName
  }

  /// What brings the commands for the device, and none for those of other gateways.
  let commands: TopicFilter
  /// What tells of its holder, what others say of it, and commands: those come last, since a retained one is for its
  /// holder.
  var inbound: [TopicFilter] { [TopicFilter(info), TopicFilter(availability), commands] }
  let availability: TopicName
  let readings: TopicName
  let info: TopicName
  /// In the order of the profile's properties.
  let properties: [Topics]
  private let prefix: String

  init(prefix: String, profile: Profile) {
    self.prefix = prefix
    commands = filter("\(prefix)/+/set")
    availability = name("\(prefix)/availability")
    readings = name("\(prefix)/readings")
    info = name("\(prefix)/info")
    properties = profile.properties.map { property in
      let value = "\(prefix)/\(property.name)"
      return Topics(value: name(value), set: name("\(value)/set"), result: name("\(value)/result"))
    }
  }

  /// All that the broker retains of the device.
  var states: [TopicName] { [availability, info] + properties.map(\.value) }

  /// Where a command for a property is answered, even one that the profile does not have.
  func result(ofProperty property: String) -> TopicName { name("\(prefix)/\(property)/result") }
}

/// A topic made of parts that were each validated when they came in.
func name(_ text: String) -> TopicName {
  guard let name = TopicName(text) else { preconditionFailure("not a topic: \(text)") }
  return name
}

func filter(_ text: String) -> TopicFilter {
  guard let filter = TopicFilter(text) else { preconditionFailure("not a topic filter: \(text)") }
  return filter
}
