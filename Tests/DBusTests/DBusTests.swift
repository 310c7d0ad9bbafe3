import DBus
import EventLoop
import Synchronization
import TestSupport
import Testing

/// Two connections on a real bus: what one sends the other gets, and every call ends.
@Suite struct DBusTests {
  /// Serves `org.example.Echo`: `Echo` answers its arguments, `Fail` an error, `Silence` nothing.
  private func echo(on bus: PrivateBus) async throws -> DBusConnection {
    let holder = Holder()
    let connection = try await DBusConnection.open(bus.address) { event in
      guard case .call(let call) = event, let connection = holder.connection else { return }
      switch call.member {
      case "Echo": try? connection.reply(to: call, .success(call.arguments))
      case "Fail":
        let error = DBusError.remote(name: "org.example.Error", message: "as asked")
        try? connection.reply(to: call, .failure(error))
      default: break
      }
    }
    holder.connection = connection
    #expect(try await connection.requestName("org.example.Echo"))
    return connection
  }

  /// Calls `body` with another connection on the same bus.
  private func withEcho(_ body: (DBusConnection) async throws -> Void) async throws {
    let bus = try await PrivateBus()
    let server = try await echo(on: bus)
    let client = try await DBusConnection.open(bus.address) { _ in }
    try await body(client)
    await server.close()
    await client.close()
  }

  private final class Holder: Sendable {
    private let box = Mutex<DBusConnection?>(nil)
    var connection: DBusConnection? {
      get { box.withLock { $0 } }
      set { box.withLock { $0 = newValue } }
    }
  }

  private func call(_ member: String, _ arguments: [DBusValue] = []) -> DBusCall {
    DBusCall(member, on: "org.example.Echo", of: "/", at: "org.example.Echo", arguments)
  }

  @Test func everyTypeComesBackAsItWent() async throws {
    try await withEcho { client in
      let values: [DBusValue] = [
        .byte(255), .boolean(true), .int16(-32768), .uint16(65535), .int32(.min), .uint32(.max),
        .string("größer"), .objectPath("/a/b"), .bytes([0, 1, 255]), .bytes([]), .strings(["a", ""]),
        .strings([]),
        .array(of: "ay", [.bytes([1]), .bytes([])]),
        .properties(["Connected": .boolean(true), "RSSI": .int16(-61)]),
        .dictionary(key: "q", value: "v", []),
        .structure([.string("x"), .variant(.variant(.byte(1)))]),
      ]
      let reply = try await client.call(call("Echo", values), timeout: patience)
      #expect(reply == values)
    }
  }

  @Test func aRemoteErrorKeepsItsNameAndWords() async throws {
    try await withEcho { client in
      await #expect(throws: DBusError.remote(name: "org.example.Error", message: "as asked")) {
        try await client.call(call("Fail"), timeout: patience)
      }
    }
  }

  @Test func aCallThatIsNeverAnsweredEndsByItsOwnTimeOut() async throws {
    try await withEcho { client in
      await #expect(throws: DBusError.timedOut) {
        try await client.call(call("Silence"), timeout: .milliseconds(20))
      }
      // The connection goes on.
      let reply = try await client.call(call("Echo", [.byte(1)]), timeout: patience)
      #expect(reply == [.byte(1)])
    }
  }

  @Test func callsBeyondTheLimitOfTheBusAreQueued() async throws {
    try await withEcho { client in
      let sum = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<500 {
          group.addTask {
            try await client.call(
              DBusCall(
                "Echo", on: "org.example.Echo", of: "/", at: "org.example.Echo", [.int32(Int32(number))]),
              timeout: patience
            ).first?.integer ?? 0
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(sum == 499 * 500 / 2)
    }
  }

  @Test func aNameThatTheConnectionHasIsItsOwn() async throws {
    try await withEcho { client in
      for (name, isOwn) in [("Mine", true), ("Mine", true), ("Echo", false)] {
        let isOwned = try await client.requestName("org.example." + name)
        #expect(isOwned == isOwn)
      }
    }
  }

  @LoopActor private static func receive(from sender: String, _ client: DBusConnection) {
    client.signalSenders = [sender]
  }

  @Test func signalsOfStrangersAreDropped() async throws {
    let bus = try await PrivateBus()
    let server = try await echo(on: bus)
    let members = Record<String>()
    let client = try await DBusConnection.open(bus.address, signalSenders: []) {
      if case .signal(let signal) = $0 { members.append(signal.member) }
    }
    try await client.addMatch(["interface": "org.example.Echo"])
    let owner = try await client.callBus("GetNameOwner", .string("org.example.Echo")).first?.text
    try await server.emit(DBusSignal("Before", on: "org.example.Echo", of: "/"))
    // What was sent before the answer has arrived with it.
    _ = try await client.call(call("Echo"), timeout: patience)
    await Self.receive(from: owner ?? "", client)
    try await server.emit(DBusSignal("After", on: "org.example.Echo", of: "/"))
    _ = try await members.first(within: patience, "a signal") { $0 == "After" }
    #expect(!members.elements.contains("Before"))
    await server.close()
    await client.close()
  }

  @Test func signalsArriveInOrder() async throws {
    let bus = try await PrivateBus()
    let all = Waiter<Void>()
    let server = try await DBusConnection.open(bus.address) { _ in }
    let collector = Collector(all)
    let client = try await DBusConnection.open(bus.address) { event in
      if case .signal(let signal) = event, signal.member == "Tick" {
        collector.add(signal.arguments[0].integer ?? -1)
      }
    }
    try await client.addMatch(["interface": "org.example.Clock"])
    for number in 0..<1000 {
      try await server.emit(
        DBusSignal("Tick", on: "org.example.Clock", of: "/", [.int32(Int32(number))]))
    }
    try await deadline(patience, "1000 signals") { try await all.value() }
    #expect(collector.numbers == Array(0..<1000))
    await server.close()
    await client.close()
  }

  private final class Collector: Sendable {
    private let state = Mutex<[Int]>([])
    private let all: Waiter<Void>
    init(_ all: Waiter<Void>) { self.all = all }
    var numbers: [Int] { state.withLock { $0 } }
    func add(_ number: Int) {
      let count = state.withLock { numbers in
        numbers.append(number)
        return numbers.count
      }
      if count == 1000 { all.resume(.success(())) }
    }
  }

  @Test func endOfTheDaemonEndsEveryCallAndIsReported() async throws {
    let bus = try await PrivateBus()
    let server = try await echo(on: bus)
    let told = Waiter<Void>()
    let client = try await DBusConnection.open(bus.address) { event in
      if case .disconnected = event { told.resume(.success(())) }
    }
    let answer = Task { try await client.call(self.call("Silence"), timeout: patience) }
    // The call is on its way when an echo sent after it has come back.
    _ = try await client.call(call("Echo"), timeout: patience)
    bus.kill()
    await #expect(throws: DBusError.disconnected) { _ = try await answer.value }
    try await deadline(patience, "the disconnection") { try await told.value() }
    await #expect(throws: DBusError.disconnected) {
      try await client.call(call("Echo"), timeout: patience)
    }
    await server.close()
  }

  private static let unreachable: [(String, String)] = [
    ("unix:path=/nonexistent/bus", "No such file or directory"),
    ("nonsense", "Address does not contain a colon"),
  ]

  @Test(arguments: unreachable)
  func aBusThatIsNotThereIsNamedOnce(_ address: String, _ reason: String) async throws {
    await #expect(throws: DBusError.unreachable(address: address, reason: reason)) {
      _ = try await DBusConnection.open(address) { _ in }
    }
  }

  @Test func invalidArgumentsAreRefused() async throws {
    try await withEcho { client in
      for bad in [DBusValue.string("a\0b"), .objectPath("not a path")] {
        await #expect(throws: DBusError.self) {
          try await client.call(call("Echo", [.variant(.byte(1)), bad]), timeout: patience)
        }
      }
    }
  }
}
