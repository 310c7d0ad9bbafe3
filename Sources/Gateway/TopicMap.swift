import GATT
import MQTT

/// Every topic of the gateway, and what an arriving one means.
struct TopicMap: Sendable {
  let base: String
  let profile: Profile
  private let bridge: String

  /// - Parameter base: `mqtt.base_topic`, validated.
  init(base: String, gateway: GatewayID, profile: Profile) {
    self.base = base
    self.profile = profile
    self.bridge = "\(base)/bridge/\(gateway)"
  }

  // MARK: Outbound

  var bridgeState: TopicName { name("\(bridge)/state") }
  var bridgeInfo: TopicName { name("\(bridge)/info") }
  var bridgeDevices: TopicName { name("\(bridge)/devices") }

  /// Where a request is answered when it names no response topic of its own.
  func bridgeResponse(to verb: String) -> TopicName { name("\(bridge)/response/\(verb)") }

  /// The topics of a device. Built once, when the device is first known.
  func topics(of device: DeviceID) -> DeviceTopics {
    DeviceTopics(prefix: "\(base)/\(device)", profile: profile)
  }

  // MARK: Inbound

  /// What brings the requests to the gateway itself.
  var requests: TopicFilter { filter("\(bridge)/request/#") }

  /// What a message on `topic` asks for; nil when it is none of this gateway's business.
  func request(on topic: String) -> InboundRequest? {
    if let verb = rest(of: topic, after: "\(bridge)/request/") {
      let words = verb.split(separator: "/", omittingEmptySubsequences: false)
      // No longer than a word either: the topic of its answer has to be one.
      let isVerb = verb.utf8.count <= TopicWord.longest && words.allSatisfy(TopicWord.isValid)
      return isVerb ? .bridge(verb: verb) : nil
    }
    guard let rest = rest(of: topic, after: "\(base)/") else { return nil }
    let levels = rest.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard levels.count == 3, levels[2] == "set", TopicWord.isValid(levels[1]),
      let device = try? DeviceID(levels[0])
    else { return nil }
    let name = levels[1]
    guard let property = profile.property(named: name) else {
      let known = profile.properties.filter(\.isWritable).map(\.name).joined(separator: ", ")
      return .refused(device, property: name, reason: "there is no property \(name); settable: \(known)")
    }
    guard property.isWritable else {
      return .refused(device, property: name, reason: "\(name) can only be read")
    }
    return .set(device, property)
  }

  /// Compared byte by byte, as the broker does: `String` takes different spellings of é for the same.
  private func rest(of topic: String, after prefix: String) -> String? {
    guard topic.utf8.starts(with: prefix.utf8) else { return nil }
    return String(topic.utf8.dropFirst(prefix.utf8.count))
  }
}

/// What an arriving message asks for.
enum InboundRequest: Sendable, Equatable {
  case set(DeviceID, Property)
  /// A property that is none, or cannot be set: answered on ``DeviceTopics/result(ofProperty:)``.
  case refused(DeviceID, property: String, reason: String)
  /// `devices`, `device/add` …; the verb may be unknown, its words are valid.
  case bridge(verb: String)
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

  /// Where a command for a property is answered, even one that the profile does not have.
  func result(ofProperty property: String) -> TopicName { name("\(prefix)/\(property)/result") }
}

/// A topic made of parts that were each validated when they came in.
private func name(_ text: String) -> TopicName {
  guard let name = TopicName(text) else { preconditionFailure("not a topic: \(text)") }
  return name
}

private func filter(_ text: String) -> TopicFilter {
  guard let filter = TopicFilter(text) else { preconditionFailure("not a topic filter: \(text)") }
  return filter
}
