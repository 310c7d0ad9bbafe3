import EventLoop
import Glibc
import TestSupport
import Testing

@Suite final class ExecutorTests: Sendable {
  let loop = EventLoop.onNewThread()
  deinit { loop.stop() }

  private actor Counter {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var numbers: [Int] = []
    private(set) var timesOffLoop = 0

    init(_ loop: EventLoop) { self.loop = loop }

    func add(_ number: Int) {
      numbers.append(number)
      if !loop.isCurrent { timesOffLoop += 1 }
    }

    /// As a handler of the loop enters: without a hop.
    func addFromATimer(_ number: Int) async throws {
      let waiter = Waiter<Void>()
      loop.timer(after: .zero) {
        self.assumeIsolated { $0.add(number) }
        waiter.resume(.success(()))
      }
      try await waiter.value()
    }
  }

  @Test func jobsOfAnotherThreadRunInOrder() async throws {
    let loop = loop
    let numbers = Record<Int>()
    detach { for number in 0..<20_000 { loop.onLoop { numbers.append(number) } } }
    #expect(try await numbers.first(20_000) == Array(0..<20_000))
  }

  @Test func jobsOfEachOfSeveralThreadsRunInOrder() async throws {
    let loop = loop
    let numbers = Record<(thread: Int, number: Int)>()
    for thread in 0..<4 {
      detach { for number in 0..<2_000 { loop.onLoop { numbers.append((thread, number)) } } }
    }
    let all = try await numbers.first(8_000)
    for thread in 0..<4 {
      #expect(all.filter { $0.thread == thread }.map(\.number) == Array(0..<2_000))
    }
  }

  @Test func anActorOnItRunsOnItsThreadAlone() async throws {
    let counter = Counter(loop)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<1000 { group.addTask { await counter.add(number) } }
    }
    #expect(await counter.numbers.sorted() == Array(0..<1000))
    #expect(await counter.timesOffLoop == 0)
  }

  @Test func aHandlerEntersAnActorWithoutAHop() async throws {
    let counter = Counter(loop)
    try await counter.addFromATimer(1)
    #expect(await counter.numbers == [1])
  }

  @Test func jobsThatEnqueueJobsDoNotStarveTimers() async throws {
    let loop = loop
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
    let loop = loop
    let elsewhere = await Task(executorPreference: loop) {
      let elsewhere = await EventLoop.blocking { !loop.isCurrent }
      // And comes back.
      return elsewhere && loop.isCurrent
    }.value
    #expect(elsewhere)
  }

  @Test func stopEndsTheRunAfterTheJobsThatCameBefore() async throws {
    let other = EventLoop()
    let events = Record<String>()
    other.onLoop { events.append("job") }
    detach {
      other.run()
      events.append("ended")
    }
    _ = try await events.first(1)
    #expect(!other.isCurrent)
    other.onLoop {
      other.onLoop { events.append("inner") }
      other.stop()
    }
    #expect(try await events.first(3) == ["job", "inner", "ended"])
  }

  @Test func aLoopThatWasStoppedRunsNoMore() {
    let other = EventLoop()
    other.stop()
    other.run()
    #expect(!other.isCurrent)
  }
}
