import EventLoop
import Log
import Synchronization
import TestSupport

@testable import MQTT

/// A client that runs, with the events and log lines that it has produced.
final class TestClient: Sendable {
  let client: MQTTClient
  let events = Record<MQTTEvent>()
  let lines = Record<(level: LogLevel, line: String)>()
  private let task: Task<Void, Never>

  init(_ options: MQTTOptions, prepare: @LoopActor (MQTTClient) -> Void = { _ in }) async {
    let (events, lines) = (events, lines)
    let client = await MQTTClient(options: options) { lines.append(($0, $1)) }
    self.client = client
    await client.setHandler { events.append($0) }
    await prepare(client)
    task = Task { await client.run() }
  }

  deinit { task.cancel() }

  /// Closes the connection without DISCONNECT, as when the process is killed.
  func die() async {
    task.cancel()
    await task.value
  }

  func publish(_ message: MQTTMessage) async { await client.isolated { $0.publish(message) } }

  func setState(_ topic: TopicName, _ payload: [UInt8]) async {
    await client.isolated { $0.setState(topic, payload) }
  }

  func clearState(_ topic: TopicName) async { await client.isolated { $0.clearState(topic) } }

  func unsubscribe(_ filter: TopicFilter) async { await client.isolated { $0.unsubscribe([filter]) } }

  @discardableResult
  func connected() async throws -> MQTTConnection {
    try await events.next("a connection") {
      if case .connected(let connection) = $0 { connection } else { nil }
    }
  }

  /// The number of connections so far.
  var connections: Int {
    events.elements.count { if case .connected = $0 { true } else { false } }
  }

  func disconnected() async throws -> MQTTError? {
    try await events.next("the loss of the connection") {
      if case .disconnected(let error) = $0 { .some(error) } else { nil }
    }
  }

  func connectFailed(within limit: Duration = patience) async throws -> MQTTError {
    try await events.next("a failed attempt", within: limit) {
      if case .connectFailed(let error) = $0 { error } else { nil }
    }
  }

  /// The first failure that is not a time-out in `phases`, which a busy machine may cause.
  func failure(after phases: [MQTTError.Phase] = [.lookUp]) async throws -> MQTTError {
    while true {
      let error = try await connectFailed()
      if !phases.contains(where: { error == .timedOut($0) }) { return error }
    }
  }

  func message(within limit: Duration = patience) async throws -> MQTTReceived {
    try await events.next("a message", within: limit) {
      if case .message(let message) = $0 { message } else { nil }
    }
  }

  /// The payloads of the next `count` messages, as text.
  func texts(_ count: Int) async throws -> [String] {
    var texts: [String] = []
    for _ in 0..<count { texts.append(try await message().text) }
    return texts
  }
}

extension MQTTClient {
  func isolated<Value: Sendable>(_ body: @LoopActor (MQTTClient) -> Value) -> Value { body(self) }
}

extension MQTTReceived {
  var text: String { String(decoding: payload, as: UTF8.self) }
}

extension MQTTOptions {
  /// For a broker on the loopback interface: short back-off, and a client id of its own for every client.
  static func local(_ port: UInt16, _ version: ProtocolVersion = .v5) -> MQTTOptions {
    let number = counter.withLock { counter in
      counter += 1
      return counter
    }
    var options = MQTTOptions(
      [MQTTBroker(host: "127.0.0.1", port: port)], protocolVersion: version, clientID: "test-\(number)")
    options.backOff = BackOff(first: .milliseconds(20), longest: .milliseconds(100), spread: 1)
    options.refusalBackOff = options.backOff
    return options
  }

  private static let counter = Mutex(0)
}

func topic(_ text: String) -> TopicName { TopicName(text)! }
func filter(_ text: String) -> TopicFilter { TopicFilter(text)! }
