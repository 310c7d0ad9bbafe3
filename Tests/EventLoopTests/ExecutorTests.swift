import EventLoop
import Glibc
import TestSupport
import Testing

@Suite struct ExecutorTests {
  @LoopActor private final class Counter {
    private(set) var numbers: [Int] = []
    private(set) var timesOffLoop = 0

    func add(_ number: Int) {
      numbers.append(number)
      if !loop.isCurrent { timesOffLoop += 1 }
    }
  }

  @Test func jobsOfAnotherThreadRunInOrder() async throws {
    let numbers = Record<Int>()
    detach { for number in 0..<20_000 { loop.onLoop { numbers.append(number) } } }
    #expect(try await numbers.first(20_000) == Array(0..<20_000))
  }

  @Test func jobsOfEachOfSeveralThreadsRunInOrder() async throws {
    let numbers = Record<(thread: Int, number: Int)>()
    for thread in 0..<4 {
      detach { for number in 0..<2_000 { loop.onLoop { numbers.append((thread, number)) } } }
    }
    let all = try await numbers.first(8_000)
    for thread in 0..<4 {
      #expect(all.filter { $0.thread == thread }.map(\.number) == Array(0..<2_000))
    }
  }

  @Test func whatItIsolatesRunsOnItsThreadAlone() async throws {
    let counter = Counter()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<1000 { group.addTask { await counter.add(number) } }
    }
    #expect(await counter.numbers.sorted() == Array(0..<1000))
    #expect(await counter.timesOffLoop == 0)
  }

  /// As a callback of a C library: the compiler knows of no isolation there.
  @Test func aCallbackEntersTheIsolationWithoutAHop() async throws {
    let counter = Counter()
    let callback: @Sendable () -> Void = { LoopActor.enter { counter.add(1) } }
    await loop.perform {
      callback()
      #expect(counter.numbers == [1])
    }
  }

  @Test func jobsThatEnqueueJobsDoNotStarveTimers() async throws {
    let ended = Record<Void>()
    await withTaskGroup(of: Void.self) { group in
      group.addTask(executorPreference: loop) {
        while ended.elements.isEmpty { await Task.yield() }
      }
      // A timer is served all the same.
      try? await loop.sleep(for: .milliseconds(5))
      ended.append(())
    }
  }

  @Test func blockingWorkRunsOnAnotherThread() async {
    let elsewhere = await Task(executorPreference: loop) {
      let elsewhere = await EventLoop.blocking { !loop.isCurrent }
      // And comes back.
      return elsewhere && loop.isCurrent
    }.value
    #expect(elsewhere)
  }

  @Test func whoAsksTwiceForTheEndOfTheIterationIsCalledOnce() async {
    let counter = Counter()
    let handler = await loop.perform { Ending { counter.add(1) } }
    await iteration {
      loop.atEndOfIteration(handler)
      loop.atEndOfIteration(handler)
    }
    #expect(await counter.numbers == [1])
    await iteration { loop.atEndOfIteration(handler) }
    #expect(await counter.numbers == [1, 1])
  }

  /// Calls `body`, and waits for the end of that iteration.
  private func iteration(_ body: @escaping @LoopActor () -> Void) async {
    await withCheckedContinuation { continuation in
      loop.onLoop {
        body()
        loop.atEndOfIteration(Ending { continuation.resume() })
      }
    }
  }
}

@LoopActor private final class Ending: IterationEndHandler {
  private let onEnd: () -> Void

  init(_ onEnd: @escaping () -> Void) { self.onEnd = onEnd }

  func iterationEnds() { onEnd() }
}
