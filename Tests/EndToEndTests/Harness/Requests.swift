import TestSupport

extension Fixture {
  /// The gateway's own topics, below the base topic.
  var bridge: String { "bridge/\(plan.id)" }

  /// Sends a request to the gateway; what it answers on the topic that everybody can listen to. One of a kind at a
  /// time: the next answer counts.
  func request(_ verb: String, _ payload: String = "") async throws -> JSON {
    try await request(verb, bytes: Array(payload.utf8))
  }

  func request(_ verb: String, bytes: [UInt8]) async throws -> JSON {
    let mark = try observer.mark
    try await observer.publish("microbit/\(bridge)/request/\(verb)", bytes)
    return try await message("\(bridge)/response/\(verb)", after: mark).json()
  }

  /// As ``request(_:_:)``, for one that is met: its data.
  @discardableResult
  func done(_ verb: String, _ payload: String = "") async throws -> JSON {
    let answer = try await request(verb, payload)
    guard answer["status"]?.string == "ok" else { throw Failure("\(verb) \(payload): \(answer)") }
    return answer["data"] ?? .null
  }

  /// As ``request(_:_:)``, for one that is refused: why.
  func refusal(_ verb: String, _ payload: String = "") async throws -> String {
    let answer = try await request(verb, payload)
    guard answer["status"]?.string == "error", answer["data"] == nil, let error = answer["error"]?.string
    else { throw Failure("\(verb) \(payload): \(answer)") }
    return error
  }

  /// The device of this id as the request `devices` lists it now.
  func listed(_ id: String) async throws -> JSON? {
    try await done("devices").array?.first { $0["id"]?.string == id }
  }

  /// Ends the gateway and starts another; returns when that is online.
  func restartGateway() async throws {
    let mark = try observer.mark
    _ = try await stopGateway()
    let offline = try await message("\(bridge)/state", "offline", after: mark)
    try startGateway()
    try await bridgeOnline(after: offline.number)
  }

  /// What the broker keeps below the base topic about devices of this id, by topic.
  func retained(of id: String) async throws -> [String: Observer.Message] {
    try await retained().filter { $0.key.hasPrefix("\(id)/") }
  }

  /// Whether nothing has been said of a device since `mark` but that it is there.
  func stayed(_ id: String, after mark: Int) throws -> Bool {
    try observer.messages(on: "microbit/\(id)/availability", after: mark).allSatisfy { $0.text == "online" }
  }

  /// Takes a micro:bit out of reach; returns when the gateway has said so.
  func vanish(_ index: Int, _ id: String) async throws {
    let mark = try observer.mark
    try await simulator.control("vanish", index)
    try await offline(id, after: mark)
  }

  /// What the broker keeps on a topic; nil: nothing.
  func kept(_ topic: String) async throws -> Observer.Message? {
    try await Observer(port: broker.port).messages.first { $0.topic == topic && $0.retain }
  }

  /// Writes the configuration with other entries, and has it read by the request.
  /// - Returns: the keys that need a restart.
  @discardableResult
  func reload(entries: String) async throws -> JSON? {
    try configure(entries: entries)
    return try await done("reload")["restart_required"]
  }
}
