import GATT

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

  var bridgeState: String { "\(bridge)/state" }
  var bridgeInfo: String { "\(bridge)/info" }
  var bridgeDevices: String { "\(bridge)/devices" }

  /// Where a request is answered when it names no response topic of its own.
  func bridgeResponse(to verb: String) -> String { "\(bridge)/response/\(verb)" }

  /// The topics of a device. Built once, when the device is first known.
  func topics(of device: DeviceID) -> DeviceTopics {
    DeviceTopics(prefix: "\(base)/\(device)", profile: profile)
  }

  // MARK: Inbound

  /// The filters that bring everything this gateway acts on, and little else.
  var subscriptions: [String] { ["\(base)/+/+/set", "\(bridge)/request/#"] }

  /// What a message on `topic` asks for; nil when it is none of this gateway's business.
  func request(on topic: String) -> InboundRequest? {
    if let verb = rest(of: topic, after: "\(bridge)/request/") {
      let words = verb.split(separator: "/", omittingEmptySubsequences: false)
      return words.allSatisfy(TopicWord.isValid) ? .bridge(verb: verb) : nil
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
    let value: String
    let set: String
    let result: String
  }

  let availability: String
  let readings: String
  let info: String
  /// In the order of the profile's properties.
  let properties: [Topics]
  private let prefix: String

  init(prefix: String, profile: Profile) {
    self.prefix = prefix
    availability = "\(prefix)/availability"
    readings = "\(prefix)/readings"
    info = "\(prefix)/info"
    properties = profile.properties.map { property in
      let value = "\(prefix)/\(property.name)"
      return Topics(value: value, set: "\(value)/set", result: "\(value)/result")
    }
  }

  /// Where a command for a property is answered, even one that the profile does not have.
  func result(ofProperty name: String) -> String { "\(prefix)/\(name)/result" }
}
