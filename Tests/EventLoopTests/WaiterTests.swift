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
    let pending = { @Sendable in
      await loop.perform { loop.timers.timers.count { $0.isPending && $0.deadline > late } }
    }
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

  @Test func aValueInTimeIsReturnedOrThrown() async throws {
    let (waiter, failing) = (Waiter<Int>(), Waiter<Int>())
    waiter.resume(.success(7))
    #expect(try await waiter.value(within: .seconds(60)) == 7)
    failing.resume(.failure(Trouble()))
    await #expect(throws: Trouble.self) { try await failing.value(within: .seconds(60)) }
  }

  @Test func withoutAValueInTimeThereIsNone() async throws {
    let waiter = Waiter<Int>()
    #expect(try await waiter.value(within: .milliseconds(5)) == nil)
    #expect(!waiter.resume(.success(7)), "it is dropped")
  }

  @Test func aBodyThatTakesTooLongGoesOnByItself() async throws {
    let (gate, ended) = (Waiter<Int>(), Record<Int>())
    let result = await loop.result(within: .milliseconds(5)) { () -> Int in
      let value = (try? await gate.value()) ?? 0
      ended.append(value)
      return value
    }
    #expect(result == nil)
    gate.resume(.success(7))
    #expect(try await ended.first(1) == [7])
  }

  @Test func theBodyRunsOnTheLoop() async throws {
    #expect(await loop.result(within: .seconds(60)) { loop.isCurrent } == true)
  }
}
