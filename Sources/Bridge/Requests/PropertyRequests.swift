import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

struct PropertyGetKeys: RequestKeys {
  var id: DeviceID?
  var property: String?

  static let own: [ConfigurationKey<Self>] = [.id(\.id), .property(\.property)]
}

extension ConfigurationKey {
  fileprivate static func property(_ place: WritableKeyPath<Section, String?> & Sendable) -> Self {
    ConfigurationKey(required: "property", place, .propertyName, hint: "its name, as in its topics")
  }
}

struct PropertySetKeys: RequestKeys {
  var id: DeviceID?
  var property: String?
  var value: JSONValue?
  /// In seconds.
  var ttl: Int?

  static let own: [ConfigurationKey<Self>] = [
    .id(\.id), .property(\.property),
    ConfigurationKey(required: "value", \.value, .any, hint: "as on …/set"),
    ConfigurationKey("ttl", \.ttl, .optional(.integer(Command.ttls))),
  ]

  var content: BridgeRequest.Content? {
    guard let id, let property, let value else { return nil }
    return .setProperty(property, of: id, value, ttl: ttl)
  }
}

extension RequestHandler {
  /// Reads a property now.
  func get(_ property: String, of id: DeviceID, _ reply: @escaping Reply) throws(RequestError) {
    try usable(id)
    let unit = try engine.property(property, of: id).unit
    try engine.get(property, of: id) { [engine] result in
      if case .failed(let reason) = result.outcome, engine.device(id)?.isOnline != true {
        return reply(.failure(RequestError(reason)))
      }
      reply(.success(Self.data(result, unit)))
    }
  }

  /// How long the outcome of a command is awaited: it may be written at the end of its `ttl`, and takes `settle` then.
  nonisolated static func replyTimeout(_ ttl: Int, _ property: Property) -> Duration {
    .seconds(ttl + 30) + (property.settle ?? .zero)
  }

  /// Carries out a command. Without `ttl`, `pending` is the answer for a device that is offline.
  func set(
    _ name: String, of id: DeviceID, _ value: JSONValue, _ ttl: Int?, _ reply: @escaping Reply
  ) throws(RequestError) {
    try usable(id)
    let property = try engine.property(name, of: id)
    let isAnswered = Waiter<Void>()
    func answer(_ result: CommandResult) {
      if isAnswered.resume(.success(())) { reply(.success(Self.data(result, property.unit))) }
    }
    // A command that waits is left to a gateway that takes the device over, which does not know of this request.
    let deadline = ttl.map {
      loop.timer(after: Self.replyTimeout($0, property)) { answer(CommandResult(property, .takenOver())) }
    }
    do throws(RequestError) {
      try engine.execute(Command(id, name, value, timeToLive: ttl)) { result in
        if case .pending = result.outcome, ttl != nil { return }
        deadline?.cancel()
        answer(result)
      }
    } catch {
      deadline?.cancel()
      throw error
    }
  }

  /// The device whose properties a request reads or sets.
  /// - Throws: if another gateway carries out its commands, or it is disabled.
  @discardableResult
  func usable(_ id: DeviceID) throws(RequestError) -> DeviceDescription {
    let device = try engine.description(of: id)
    if let owner = host.otherOwner(of: device) {
      throw RequestError("\(id) is owned by the gateway \(owner): send the request there")
    }
    try device.checkEnabled()
    return device
  }

  private static func data(_ result: CommandResult, _ unit: String?) -> JSONValue {
    result.json.merging([
      "time": .string(Timestamp.now.description), "unit": unit.map(JSONValue.string),
    ])
  }
}
