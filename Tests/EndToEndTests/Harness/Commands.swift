import TestSupport

extension Fixture {
  /// Publishes a command whose answer goes to the response topic `replies`, with correlation data that identify it.
  func publish(_ topic: String, _ payload: [UInt8], correlation: String) async throws {
    try await observer.publish(
      topic, payload, responseTopic: "replies", correlationData: Array(correlation.utf8))
  }

  /// The first answer on the response topic after `mark` with these correlation data.
  func reply(to correlation: String, after mark: Int = 0) async throws -> Observer.Message {
    try await observer.message("replies", after: mark, within: Self.patience) {
      $0.correlationData == Array(correlation.utf8)
    }
  }

  /// Publishes a period command; returns the first result after that.
  func setPeriod(_ id: String, _ payload: String) async throws -> JSON {
    let mark = try observer.mark
    try await observer.publish("microbit/\(id)/period/set", payload)
    return try await message("\(id)/period/result", after: mark).json()
  }

  /// Of the gateway's last connection; nobody but the broker tells it.
  var clientID: String {
    get throws {
      let prefix = "microbit-gateway-\(plan.id)-"
      let clients = broker.log.matches(of: /New client connected from \S+ as (\S+)/).map { String($0.1) }
      guard
        let client = clients.last(where: { $0.hasPrefix(prefix) && !$0.dropFirst(prefix.count).contains("-") }
        )
      else { throw Failure("the gateway's client id is not in the broker's log") }
      return client
    }
  }

  /// Makes the broker end the gateway's connection, by a second client with the same id. Returns when the gateway is
  /// online again: then the broker has sent it all retained messages again.
  func restartSubscriptions() async throws {
    let mark = try observer.mark
    let duplicate = try ChildProcess(
      "/usr/bin/mosquitto_sub",
      [
        "-p", "\(broker.port)", "-V", "5", "-i", try clientID, "-t", "none", "-E",
      ])
    try await duplicate.exitStatus(within: Self.patience)
    let offline = try await message("bridge/\(plan.id)/state", "offline", after: mark)
    try await bridgeOnline(after: offline.number)
  }
}
