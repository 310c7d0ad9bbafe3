import TestSupport

extension Fixture {
  /// The gateway's own topics, below the base topic.
  var bridge: String { "bridge/\(plan.id)" }

  /// Sends a request to the gateway; returns the next answer on its response topic. Requests with the same verb must
  /// not overlap.
  func request(_ verb: String, _ payload: String = "") async throws -> JSON {
    try await request(verb, bytes: Array(payload.utf8))
  }

  func request(_ verb: String, bytes: [UInt8]) async throws -> JSON {
    let mark = try observer.mark
    try await observer.publish("microbit/\(bridge)/request/\(verb)", bytes)
    return try await message("\(bridge)/response/\(verb)", after: mark).json()
  }

  /// As ``request(_:_:)``, for a request that must succeed; returns its data.
  @discardableResult
  func perform(_ verb: String, _ payload: String = "") async throws -> JSON {
    let answer = try await request(verb, payload)
    guard answer["status"]?.string == "ok" else { throw Failure("\(verb) \(payload): \(answer)") }
    return answer["data"] ?? .null
  }

  /// As ``request(_:_:)``, for a request that must be refused; returns the error.
  func refusal(_ verb: String, _ payload: String = "") async throws -> String {
    let answer = try await request(verb, payload)
    guard answer["status"]?.string == "error", answer["data"] == nil, let error = answer["error"]?.string
    else { throw Failure("\(verb) \(payload): \(answer)") }
    return error
  }

  /// The device with this id in the current answer to `devices`.
  func listed(_ id: String) async throws -> JSON? {
    try await perform("devices").array?.first { $0["id"]?.string == id }
  }

  /// Ends the gateway and starts another; returns when that is online.
  func restartGateway() async throws {
    let mark = try observer.mark
    _ = try await stopGateway()
    let offline = try await message("\(bridge)/state", "offline", after: mark)
    try startGateway()
    try await bridgeOnline(after: offline.number)
  }

  /// The retained messages of the device with this id, by topic below the base topic.
  func retained(of id: String) async throws -> [String: Observer.Message] {
    try await retained().filter { $0.key.hasPrefix("\(id)/") }
  }

  /// Whether the device was never published as offline after `mark`.
  func stayedOnline(_ id: String, after mark: Int) throws -> Bool {
    try observer.messages(on: "microbit/\(id)/availability", after: mark).allSatisfy { $0.text == "online" }
  }

  /// Takes a micro:bit out of range; returns when the gateway has published that it is offline.
  func vanish(_ index: Int, _ id: String) async throws {
    let mark = try observer.mark
    try await simulator.control("vanish", index)
    try await offline(id, after: mark)
  }

  /// Writes the configuration with these entries, and reloads it by request.
  /// - Returns: the keys that need a restart.
  @discardableResult
  func reload(entries: String) async throws -> JSON? {
    try configure(entries: entries)
    return try await perform("reload")["restart_required"]
  }
}
