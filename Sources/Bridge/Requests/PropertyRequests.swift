import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

// Requests that read or set properties of a device.

struct GetProperty: GatewayRequest {
  static let verb = "property/get"
  static let own: [ConfigurationKey<Self>] = [.id(\.$id), .property(\.$property)]
  @Required var id: DeviceID
  @Required var property: String

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.checkUsable(id)
    let unit = try call.engine.property(property, of: id).unit
    try call.engine.get(property, of: id) { result in
      if case .failed(let reason) = result.outcome, call.engine.device(id)?.isOnline != true {
        return call.reply(.failure(RequestError(reason)))
      }
      call.answer(result.json(unit))
    }
  }
}

struct SetProperty: GatewayRequest {
  static let verb = "property/set"
  static let own: [ConfigurationKey<Self>] = [
    .id(\.$id), .property(\.$property),
    ConfigurationKey(required: "value", \.$value, .any, hint: "as on …/set"),
    ConfigurationKey("ttl", \.ttl, .optional(.integer(Command.ttls))),
  ]
  @Required var id: DeviceID
  @Required var property: String
  /// The value, as on `…/set`: a string is the payload itself.
  @Required var value: JSONValue
  /// How long the command waits for a device that is offline, in seconds; nil: the answer is `pending`.
  var ttl: Int?

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.checkUsable(id)
    let known = try call.engine.property(property, of: id)
    let isAnswered = Waiter<Void>()
    func answer(_ result: CommandResult) {
      if isAnswered.resume(.success(())) { call.answer(result.json(known.unit)) }
    }
    // A command that waits is left to a gateway that takes the device over, which does not know of this request.
    let deadline = ttl.map {
      loop.timer(after: Self.replyTimeout($0, known)) { answer(CommandResult(known, .takenOver())) }
    }
    do throws(RequestError) {
      try call.engine.execute(Command(id, property, value, ttl: ttl)) { result in
        if case .pending = result.outcome, ttl != nil { return }
        deadline?.cancel()
        answer(result)
      }
    } catch {
      deadline?.cancel()
      throw error
    }
  }

  /// How long the outcome of a command is awaited: it may be written at the end of its `ttl`, and takes `settle` then.
  static func replyTimeout(_ ttl: Int, _ property: Property) -> Duration {
    .seconds(ttl + 30) + (property.settle ?? .zero)
  }
}

struct RemoveValue: GatewayRequest {
  static let verb = "value/remove"
  static let own: [ConfigurationKey<Self>] = [.id(\.$id), .property(\.$property)]
  @Required var id: DeviceID
  /// `values/moisture`, or `moisture`.
  @Required var property: String

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.checkUsable(id)
    guard let key = NamedValue.key(of: property) ?? ValueKey(property) else {
      throw RequestError(.notFound, "\(id) has no value \(Excerpt(property))")
    }
    try call.engine.removeValue(key, of: id)
    call.answer(["id": .string(id.description), "property": .string(NamedValue.name(key))])
  }
}

struct RunSequence: GatewayRequest {
  static let verb = "device/sequence"
  static let own: [ConfigurationKey<Self>] = [
    .id(\.$id), ConfigurationKey("steps", \.steps, .list(of: .section)),
    ConfigurationKey("timeout", \.timeout, .integer(1...300)),
  ]
  @Required var id: DeviceID
  var steps: [Step] = []
  /// The most time for all steps, in seconds.
  var timeout = 60

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    let path = path.key("steps")
    if steps.isEmpty {
      return [path.error("this is missing", hint: #"a list like [{"read":"temperature"}]"#)]
    }
    guard steps.count > DeviceManager.mostSteps else { return [] }
    return [path.error("\(steps.count) steps, the maximum is \(DeviceManager.mostSteps)")]
  }

  func perform(_ call: RequestCall) throws(RequestError) {
    try call.checkUsable(id)
    call.later { () throws(RequestError) in
      let results = try await call.engine.sequence(steps.map(\.step), on: id, within: timeout)
      let data = JSONValue.array(
        results.map { (["property": .string($0.property)] as JSONValue).merging($0.json) })
      guard let last = results.last, !last.outcome.isSuccess else { return data }
      let step = "step \(results.count) of \(steps.count), \(last.property)"
      throw RequestError(.failed, "\(step): \(last.outcome.reason ?? last.outcome.word)", data: data)
    }
  }

  struct Step: ConfigurationSection, Equatable {
    var write: Write?
    /// Required without `write`.
    @Required var read: String

    static let keys: [ConfigurationKey<Self>] = [
      ConfigurationKey("write", \.write, .optional(.section)),
      ConfigurationKey("read", \.$read, .optional(.propertyName)),
    ]

    func problems(at path: ConfigurationPath) -> [ConfigurationError] {
      (write == nil) == ($read == nil) ? [path.error("a step has one key: write or read")] : []
    }

    var step: SequenceStep {
      write.map { SequenceStep($0.property, $0.value) } ?? SequenceStep(read)
    }
  }

  struct Write: ConfigurationSection, Equatable {
    @Required var property: String
    @Required var value: JSONValue

    static let keys: [ConfigurationKey<Self>] = [
      ConfigurationKey(required: "property", \.$property, .propertyName),
      ConfigurationKey(required: "value", \.$value, .any),
    ]
  }
}

extension ConfigurationKey {
  fileprivate static func property(_ place: WritableKeyPath<Section, String?> & Sendable) -> Self {
    ConfigurationKey(required: "property", place, .propertyName, hint: "its name, as in its topics")
  }
}

extension CommandResult {
  fileprivate func json(_ unit: String?) -> JSONValue {
    json.merging(["time": .string(Timestamp.now.description), "unit": unit.map(JSONValue.string)])
  }
}
