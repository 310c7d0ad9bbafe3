import TestSupport
import Testing

@testable import EventLoop

@Suite struct WaiterTests {
  private struct Trouble: Error {}

  @Test func theValueMayBeDeliveredBeforeTheWait() async throws {
    let waiter = Waiter<Int>()
    #expect(waiter.resume(.success(1)))
    #expect(!waiter.resume(.success(2)))
    #expect(try await waiter.value() == 1)
  }

  @Test func theValueMayBeDeliveredAfterTheWaitBegan() async throws {
    for _ in 0..<100 {
      let waiter = Waiter<Int>()
      let value = Task { try await waiter.value() }
      await Task.yield()
      #expect(waiter.resume(.success(1)))
      #expect(!waiter.resume(.failure(Trouble())))
      #expect(try await value.value == 1)
    }
  }

  @Test func aFailureIsThrown() async throws {
    let waiter = Waiter<Int>()
    waiter.resume(.failure(Trouble()))
    await #expect(throws: Trouble.self) { try await waiter.value() }
  }

  @Test func aCancelledWaitEndsAndWhatComesLaterIsDropped() async throws {
    let waiter = Waiter<Int>()
    let value = Task { try await waiter.value() }
    value.cancel()
    try await deadline(patience, "the cancelled wait") { () async throws -> Void in
      await #expect(throws: CancellationError.self) { try await value.value }
    }
    #expect(!waiter.resume(.success(1)))
  }

  @Test func aTaskThatIsCancelledAlreadyDoesNotWait() async throws {
    let waiter = Waiter<Int>()
    let value = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await waiter.value()
    }
    try await deadline(patience, "the wait of a cancelled task") { () async throws -> Void in
      await #expect(throws: CancellationError.self) { try await value.value }
    }
  }
}

@Suite struct DeadlineTests {
  private struct Trouble: Error {}

  @Test func sleepLastsAsLongAsItSays() async throws {
    let start = ContinuousClock.now
    try await loop.sleep(for: .milliseconds(20))
    #expect(start.duration(to: .now) >= .milliseconds(20))
  }

  @Test func aCancelledSleepEndsAtOnceAndLeavesNothingBehind() async throws {
    // Other tests have timers of the same loop: none of them is due as late as these sleeps.
    let late = Moment.now + .seconds(100_000)
    let pending = { @Sendable in await loop.perform { loop.timers.pending(after: late) } }
    let sleeps = (0..<200).map { _ in Task { try await loop.sleep(for: .seconds(200_000)) } }
    try await eventually("200 sleepers") { await pending() == 200 }
    for sleep in sleeps { sleep.cancel() }
    try await deadline(patience, "the end of cancelled sleeps") {
      for sleep in sleeps {
        await #expect(throws: CancellationError.self) { try await sleep.value }
      }
    }
    try await eventually("the end of their timers") { await pending() == 0 }
  }

  @Test func resultInTimeIsReturnedOrThrown() async throws {
    #expect(try await loop.withTimeout(.seconds(60)) { 7 } == 7)
    await #expect(throws: Trouble.self) { try await loop.withTimeout(.seconds(60)) { throw Trouble() } }
  }

  @Test func lateBodyIsCancelledAndAwaited() async throws {
    let cancelled = Record<Bool>()
    await #expect(throws: TimedOut.self) {
      try await loop.withTimeout(.milliseconds(5)) {
        try? await loop.sleep(for: .seconds(3600))
        cancelled.append(Task.isCancelled)
      }
    }
    #expect(cancelled.elements == [true])
  }

  @Test func theOperationRunsOnTheLoop() async throws {
    #expect(try await loop.withTimeout(.seconds(60)) { loop.isCurrent })
  }
}
