import Configuration
import Devices
import EventLoop
import GATT
import JSON

struct PropertyGetKeys: RequestKeys {
  var id: DeviceID?
  var property: String?

  static var own: [ConfigurationKey<Self>] { [.id(\.id), .property(\.property)] }
}

extension ConfigurationKey {
  fileprivate static func property(_ place: WritableKeyPath<Section, String?>) -> Self {
    ConfigurationKey(required: "property", place, .propertyName, hint: "its name, as in its topics")
  }
}

struct PropertySetKeys: RequestKeys {
  var id: DeviceID?
  var property: String?
  var value: JSONValue?
  /// In seconds.
  var ttl: Int?

  static var own: [ConfigurationKey<Self>] {
    [
      .id(\.id), .property(\.property),
      ConfigurationKey(required: "value", \.value, .any, hint: "as on …/set"),
      ConfigurationKey("ttl", \.ttl, .optional(.integer(CommandPayload.ttls))),
    ]
  }

  var content: BridgeRequest.Content? {
    guard let id, let property, let value else { return nil }
    return .setProperty(property, of: id, value, ttl: ttl)
  }
}

extension RequestHandler {
  /// Reads a property now.
  func get(_ name: String, of id: DeviceID, _ reply: @escaping Reply) throws(RequestError) {
    let (property, index) = try property(name, of: id)
    engine.assumeIsolated { engine in
      engine.get(index, of: id) { [engine] outcome in
        let isOnline = engine.assumeIsolated { $0.device(id)?.isOnline == true }
        if case .failed(let reason) = outcome, !isOnline { return reply(.failure(RequestError(reason))) }
        reply(.success(Self.data(outcome, property)))
      }
    }
  }

  /// How long the outcome of a command is awaited: it may be written at the end of its `ttl`, and takes `settle` then.
  static func replyTimeout(_ ttl: Int, _ property: Property) -> Duration {
    .seconds(ttl + 30) + (property.settle ?? .zero)
  }

  /// Carries out a command. Without `ttl`, `pending` is the answer for a device that is offline.
  func set(
    _ name: String, of id: DeviceID, _ value: JSONValue, _ ttl: Int?, _ reply: @escaping Reply
  ) throws(RequestError) {
    let (property, index) = try property(name, of: id)
    let parsed: EncodedValue
    do throws(Rejection) {
      parsed = try CommandPayload.value(value.payload, for: property)
    } catch {
      throw RequestError(.invalid, error.reason)
    }
    let isAnswered = Waiter<Void>()
    @Sendable func answer(_ outcome: Outcome) {
      guard isAnswered.resume(.success(())) else { return }
      reply(.success(Self.data(outcome, property, requested: parsed.value)))
    }
    // A command that waits is left to a gateway that takes the device over, which does not know of this request.
    let deadline = ttl.map {
      loop.timer(after: Self.replyTimeout($0, property)) {
        answer(.failed(reason: Outcome.takenOverReason))
      }
    }
    let command = Command(
      parsed, timeToLive: ttl.map { TimeToLive(seconds: $0, from: .now) },
      reply: { outcome in
        if case .pending = outcome, ttl != nil { return }
        deadline?.cancel()
        answer(outcome)
      })
    engine.assumeIsolated { $0.execute(command, on: index, of: id) }
  }

  private func property(
    _ name: String, of id: DeviceID
  ) throws(RequestError) -> (property: Property, index: Int) {
    let device = try usable(id)
    guard let index = device.profile.index(ofPropertyNamed: name) else {
      throw engine.assumeIsolated { $0.noProperty(name, of: device) }
    }
    return (device.profile.properties[index], index)
  }

  /// The device whose properties a request reads or sets.
  /// - Throws: if another gateway carries out its commands, or it is disabled.
  @discardableResult
  func usable(_ id: DeviceID) throws(RequestError) -> DeviceDescription {
    let device = try onEngine { engine throws(RequestError) in try engine.description(of: id) }
    if let owner = host.otherOwner(of: device) {
      throw RequestError("\(id) is owned by the gateway \(owner): send the request there")
    }
    try device.checkEnabled()
    return device
  }

  private static func data(_ outcome: Outcome, _ property: Property, requested: Value? = nil) -> JSONValue {
    outcome.json(requested: requested, property.codec).merging([
      "time": .string(Timestamp.now.description), "unit": property.unit.map(JSONValue.string),
    ])
  }
}
