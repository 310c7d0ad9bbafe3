import EventLoop
import Glibc
import TestSupport
import Testing

@testable import BlueZ

/// One process at a time works with an adapter.
@Suite final class AdapterLockTests: Sendable {
  private let loop = EventLoop.onNewThread()
  deinit { loop.stop() }

  /// A name that no other test uses.
  private static func name(adapter: String = "hci0") -> LockName {
    LockName(bus: "test-\(UInt64.random(in: 0 ... .max))", adapter: adapter)
  }

  @Test func itCanBeHadOnceAndAgainAfterwards() async throws {
    let name = Self.name()
    try await Task(executorPreference: loop) { [loop] in
      var first = try AdapterLock(name, on: loop)
      #expect(first != nil)
      #expect(try AdapterLock(name, on: loop) == nil)
      let ended = Waiter<Void>()
      let owner = try AdapterLock.Owner(name, on: loop) { ended.resume(.success(())) }
      first = nil
      // Not at once: a program that another test starts at this moment has the socket too, until its exec.
      try await deadline(patience, "the end of the lock") { try await ended.value() }
      #expect(try AdapterLock(name, on: loop) != nil)
      withExtendedLifetime(owner) {}
    }.value
  }

  @Test func adaptersAndBusesAreIndependent() async throws {
    try await Task(executorPreference: loop) { [loop] in
      let locks = try [
        LockName(bus: "a", adapter: "hci0"), LockName(bus: "a", adapter: "hci1"),
        LockName(bus: "b", adapter: "hci0"),
        // Longer than an address can be.
        LockName(bus: "c", adapter: String(repeating: "h", count: 200)),
      ].map { try AdapterLock(LockName(bus: "\(getpid())-\($0.text)", adapter: ""), on: loop) }
      #expect(locks.allSatisfy { $0 != nil })
    }.value
  }

  @Test func secondGatewayLearnsTheOwnerAndItsEnd() async throws {
    let name = Self.name()
    try await Task(executorPreference: loop) { [loop] in
      var lock = try AdapterLock(name, on: loop)
      let ended = Waiter<Void>()
      let holder = try AdapterLock.Owner(name, on: loop) { ended.resume(.success(())) }
      #expect(holder?.pid == getpid())
      #expect(lock != nil)
      lock = nil
      try await deadline(patience, "the end of the lock") { try await ended.value() }
      #expect(holder?.hasEnded == true)
      #expect(try AdapterLock.Owner(name, on: loop) {} == nil)
    }.value
  }

  @Test func theWaitingOnesHaveABound() async throws {
    let name = Self.name()
    try await Task(executorPreference: loop) { [loop] in
      let lock = try AdapterLock(name, on: loop)
      var holders: [AdapterLock.Owner?] = []
      #expect {
        while holders.count < 1000 { holders.append(try AdapterLock.Owner(name, on: loop) {}) }
      } throws: { ($0 as? LockError)?.code == EAGAIN }
      #expect(holders.count >= 64)
      withExtendedLifetime(lock) {}
    }.value
  }

  /// As those of `doctor`, which asks who holds the lock.
  @Test func aProcessThatNoLongerWaitsTakesNoPlace() async throws {
    let name = Self.name()
    let lock = try await Task(executorPreference: loop) { [loop] in try AdapterLock(name, on: loop) }.value
    for _ in 0..<200 {
      let pid = try await Task(executorPreference: loop) { [loop] in
        try AdapterLock.Owner(name, on: loop) {}?.pid
      }.value
      #expect(pid == getpid())
    }
    withExtendedLifetime(lock) {}
  }

  @Test func aSecondCentralAsksNothingOfBluetoothdUntilTheFirstHasEnded() async throws {
    let fixture = try await Fixture()
    let (first, _) = try await fixture.centralAndMicroBit()
    let monitor = try await fixture.monitor()
    let second = CentralUnderTest(fixture.bus.address, on: fixture.loop)
    #expect(try await second.state() == .adapterInUse(by: getpid()))
    await second.central.scan(true)
    await #expect(throws: CentralError.unavailable) { try await second.central.resetAdapter() }
    #expect(monitor.lines("GetManagedObjects", "StartDiscovery", "SetDiscoveryFilter", "Set ") == [])
    try await first.end()
    try await second.isOn()
    _ = try await second.seen()
    try await second.end()
  }

  @Test func aCentralOfAnotherAdapterDoesNotWait() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    let second = CentralUnderTest(fixture.bus.address, adapter: "hci1", on: fixture.loop)
    #expect(try await second.state() == .adapterAbsent)
    try await second.end()
    try await first.end()
  }

  @Test func aCentralThatWaitsLearnsThatTheBusHasEnded() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    let second = CentralUnderTest(fixture.bus.address, on: fixture.loop)
    #expect(try await second.state() == .adapterInUse(by: getpid()))
    fixture.bus.kill()
    guard case .noBus = try await second.state() else {
      Issue.record("another state")
      return
    }
    try await second.end()
    try await first.end()
  }

  @Test func aCentralThatWaitsEndsWhenItIsCancelled() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    let second = CentralUnderTest(fixture.bus.address, on: fixture.loop)
    #expect(try await second.state() == .adapterInUse(by: getpid()))
    try await second.end()
    try await first.end()
  }

  @Test func aStrangersSocketIsNotTriedWithoutEnd() async throws {
    let fixture = try await Fixture()
    let first = try await fixture.central()
    let name = try #require(await first.central.adapterLock).name
    try await first.end()
    // Another program that refuses everyone: it listens, accepts, closes.
    let socket = socket(AF_UNIX, LockName.socketType, 0)
    try #require(name.withAddress { bind(socket, $0, $1) } == 0)
    try #require(listen(socket, 64) == 0)
    let turned = Record<Int32>()
    let watch = Box(Watch?.none)
    let loop = fixture.loop
    loop.onLoop {
      watch.value = loop.watch(socket, for: .readable) { _ in
        let descriptor = accept(socket, nil, nil)
        close(descriptor)
        turned.append(descriptor)
      }
    }
    var limits = Limits.test
    limits.lockRetry = .milliseconds(200)
    let begin = ContinuousClock.now
    let second = CentralUnderTest(fixture.bus.address, on: fixture.loop, limits: limits)
    #expect(try await second.state() == .adapterInUse(by: getpid()))
    for _ in 0..<4 { _ = try await turned.next("an attempt") { $0 } }
    #expect(begin.duration(to: .now) > .milliseconds(500))
    loop.onLoop { watch.value?.cancel() }
    try await second.end()
    close(socket)
  }
}

/// A value that several may hold; its users see to it that one at a time does.
private final class Box<Value>: @unchecked Sendable {
  var value: Value
  init(_ value: Value) { self.value = value }
}
