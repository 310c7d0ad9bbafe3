import DBus
import EventLoop
import GATT
import Glibc
import TestSupport
import Testing

@testable import BlueZ

/// Notifications by signals and by sockets, and what becomes of them when bluetoothd refuses.
@Suite struct NotificationTests {
  private static let acquired = FakeBlueZ.error("org.bluez.Error.NotPermitted", "Notify acquired")

  // MARK: Signals

  @Test func signalsAreTheDefault() async throws {
    let faults = try await Faults()
    let temperature = try #require(try await faults.connect().temperature)
    let values = Record<[UInt8]>()
    // Before anybody listens, as the answer to a read. It has arrived when a later read is answered.
    await faults.notify([20])
    _ = try await faults.central.read(temperature)
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    await faults.notify([1, 0], from: Recorded.period)
    await faults.notify([21])
    await faults.notify([])
    #expect(try await values.next("a value") { $0 } == [21])
    #expect(try await values.next("an empty value") { $0 } == [])
    // Not beyond the end of the link.
    await faults.fake.emit(Recorded.device(["Connected": .boolean(false)]))
    try await faults.tested.disconnected(Recorded.id)
    await faults.notify([22])
    _ = try await faults.connect()
    #expect(values.elements == [[21], []])
    #expect(faults.fake.count("AcquireNotify") == 0)
    try await faults.tested.end()
  }

  @Test func aSubscriptionThatFailedCanBeMadeAgain() async throws {
    let faults = try await Faults(answers: [
      "StartNotify": FakeBlueZ.error("org.bluez.Error.Failed", "Operation failed with ATT error: 0x11")
    ])
    let temperature = try #require(try await faults.connect().temperature)
    let values = Record<[UInt8]>()
    await #expect(throws: CentralError.transient("Failed: Operation failed with ATT error: 0x11")) {
      try await faults.central.subscribe(to: temperature) { _ in values.append([]) }
    }
    await faults.notify([20])
    _ = try await faults.central.read(temperature)
    await faults.fake.answer("StartNotify", FakeBlueZ.ok)
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    await faults.notify([21])
    #expect(try await values.next("a value") { $0 } == [21])
    #expect(values.elements == [[21]])
    try await faults.tested.end()
  }

  // MARK: Refused for good

  @Test(arguments: NotificationMethod.allCases)
  func notificationsThatAreTakenAreReadInstead(_ method: NotificationMethod) async throws {
    let faults = try await Faults(
      notifications: method, answers: ["StartNotify": Self.acquired, "AcquireNotify": Self.acquired])
    let temperature = try #require(try await faults.connect().temperature)
    await #expect(throws: CentralError.notifyAcquired) {
      try await faults.central.subscribe(to: temperature) { _ in }
    }
    // Either would make a bluetoothd before 5.84 crash.
    #expect(faults.fake.count("StopNotify") == 0)
    #expect(faults.fake.count("RemoveDevice") == 0)

    let results = Record<Result<[UInt8], CentralError>>()
    let polling = Task {
      await faults.central.pollUntilSubscribed(temperature, every: { .milliseconds(1) }) {
        results.append($0)
      }
    }
    for _ in 0..<3 { #expect(try await results.next("a value") { $0 } == .success([21])) }
    await faults.fake.answer(
      "ReadValue", FakeBlueZ.error("org.bluez.Error.NotPermitted", "Read not permitted"))
    _ = try await results.next("a failure") {
      $0 == .failure(.refused("NotPermitted: Read not permitted")) ? true : nil
    }
    await faults.fake.answer("ReadValue") { $0.reply($1, .bytes([22])) }
    _ = try await results.next("a value again") { $0 == .success([22]) ? true : nil }
    // Not beyond the end of the link.
    await faults.fake.answer("ReadValue", FakeBlueZ.never)
    await faults.fake.emit(Recorded.device(["Connected": .boolean(false)]))
    try await faults.tested.disconnected(Recorded.id)
    #expect(await polling.value == nil)
    let count = results.elements.count
    await faults.fake.answer("ReadValue") { $0.reply($1, .bytes([23])) }
    let again = try #require(try await faults.connect().temperature)
    #expect(try await faults.central.read(again) == [23])
    #expect(results.elements.count == count)
    try await faults.tested.end()
  }

  @Test func aPauseBetweenTwoReadsEndsWithTheLink() async throws {
    let faults = try await Faults()
    let temperature = try #require(try await faults.connect().temperature)
    let hasEnded = Record<Bool>()
    let polling = Task {
      await faults.central.poll(temperature, every: .seconds(3600)) { _ in }
      hasEnded.append(true)
    }
    defer { polling.cancel() }
    await faults.fake.emit(Recorded.device(["Connected": .boolean(false)]))
    try await faults.tested.disconnected(Recorded.id)
    _ = try await hasEnded.next("the end of the polling") { $0 }
    try await faults.tested.end()
  }

  @Test func releasedNotificationsAreSubscribedTo() async throws {
    let faults = try await Faults(answers: ["StartNotify": Self.acquired]) {
      $0.notifyRetry = .milliseconds(5)
    }
    let temperature = try #require(try await faults.connect().temperature)
    let results = Record<Result<[UInt8], CentralError>>()
    let polling = Task {
      await faults.central.pollUntilSubscribed(temperature, every: { .milliseconds(1) }) {
        results.append($0)
      }
    }
    _ = try await results.next("a value that was read") { $0 }
    try await faults.fake.called("StartNotify")
    await faults.fake.answer("StartNotify", FakeBlueZ.ok)
    #expect(await polling.value == .signal)
    let reads = faults.fake.count("ReadValue")
    await faults.notify([25])
    _ = try await results.next("a notification") { $0 == .success([25]) ? true : nil }
    #expect(faults.fake.count("ReadValue") == reads)
    try await faults.tested.end()
  }

  // MARK: Sockets

  /// The write that bluetoothd must not fail in AcquireNotify is tried by StartNotify before.
  @Test func socketIsAcquiredOnlyAfterStartNotifySucceeds() async throws {
    let faults = try await Faults(
      notifications: .socket,
      answers: [
        "StartNotify": FakeBlueZ.error("org.bluez.Error.Failed", "Operation failed with ATT error: 0x0e")
      ]
    ) { $0.linkLoss = .milliseconds(1) }
    let temperature = try #require(try await faults.connect().temperature)
    await #expect(throws: CentralError.unlikely("Failed: Operation failed with ATT error: 0x0e")) {
      try await faults.central.subscribe(to: temperature) { _ in }
    }
    #expect(faults.fake.count("AcquireNotify") == 0)
    await faults.fake.answer("StartNotify", FakeBlueZ.ok)
    let socket = await acquire(faults)
    try await faults.central.subscribe(to: temperature) { _ in }
    #expect(
      faults.fake.calls.elements.suffix(3) == ["StartNotify", "StopNotify", "AcquireNotify"])
    close(socket)
    try await faults.tested.end()
  }

  /// There may be many after a stall of the program, and the signal of the link's end may overtake them.
  @Test func socketIsDrainedAtTheEndOfTheLink() async throws {
    let faults = try await Faults(notifications: .socket)
    let temperature = try #require(try await faults.connect().temperature)
    let socket = await acquire(faults)
    let values = Record<[UInt8]>()
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    let central = faults.central
    // In one job of the loop: it cannot look at the socket in between.
    await Task(executorPreference: faults.loop) {
      for number in 0..<200 { #expect(send(socket, [UInt8(number)], 1, Int32(MSG_NOSIGNAL)) == 1) }
      await central.disconnect(Recorded.id)
    }.value
    #expect(values.elements == (0..<200).map { [UInt8($0)] })
    close(socket)
    try await faults.tested.end()
  }

  @Test(arguments: [("NotPermitted", "Notify acquired"), ("InProgress", "In Progress")])
  func signalsAreUsedIfTheSocketIsTaken(name: String, message: String) async throws {
    let faults = try await Faults(
      notifications: .socket,
      answers: ["AcquireNotify": FakeBlueZ.error("org.bluez.Error.\(name)", message)])
    let temperature = try #require(try await faults.connect().temperature)
    let values = Record<[UInt8]>()
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    #expect(faults.fake.count("AcquireNotify") == 1)
    await faults.notify([21])
    #expect(try await values.next("a value") { $0 } == [21])
    try await faults.tested.end()
  }

  /// AcquireNotify answered with one end of a socket pair; the test holds the other.
  private func acquire(_ faults: Faults) async -> Int32 {
    var ends: [Int32] = [0, 0]
    precondition(
      socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let theirs = FileDescriptor(owning: ends[1])
    await faults.fake.answer("AcquireNotify") { fake, call in
      fake.reply(call, .fileDescriptor(theirs), .uint16(23))
    }
    return ends[0]
  }

  @Test func packetsOfAnyLengthAreValues() async throws {
    let faults = try await Faults(notifications: .socket)
    let temperature = try #require(try await faults.connect().temperature)
    let socket = await acquire(faults)
    let values = Record<[UInt8]>()
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    for bytes in [[21], [], [22, 23], Array(repeating: 9, count: 512), []] as [[UInt8]] {
      #expect(send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
      #expect(try await values.next("a packet of \(bytes.count)") { $0 } == bytes)
    }
    // Its end is not that of the link, and no value.
    close(socket)
    #expect(try await faults.central.read(temperature) == [21])
    #expect(values.elements.count == 5)
    try await faults.tested.end()
  }

  @Test func theSocketIsClosedWithTheLink() async throws {
    let faults = try await Faults(notifications: .socket)
    let temperature = try #require(try await faults.connect().temperature)
    let socket = await acquire(faults)
    try await faults.central.subscribe(to: temperature) { _ in }
    // The fake lets go of its copy.
    await faults.fake.answer("AcquireNotify", FakeBlueZ.never)
    let closed = Waiter<Void>()
    await Task(executorPreference: faults.loop) {
      _ = faults.loop.watch(socket, for: []) { _ in closed.resume(.success(())) }
    }.value
    await faults.fake.emit(Recorded.device(["Connected": .boolean(false)]))
    try await deadline(patience, "the end of the socket") { try await closed.value() }
    try await faults.tested.end()
  }
}
