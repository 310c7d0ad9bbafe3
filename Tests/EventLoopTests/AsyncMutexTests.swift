import Testing

@testable import EventLoop

@LoopActor @Suite struct AsyncMutexTests {
  @LoopActor fileprivate final class Workers {
    let mutex = AsyncMutex()
    /// How many wait for the lock, or have it.
    var requests = 0
    var order: [Int] = []
    var working = 0
    var most = 0

    func work(_ number: Int, isPreferred: Bool = false) async {
      requests += 1
      await mutex.lock(isPreferred: isPreferred)
      working += 1
      most = max(most, working)
      order.append(number)
      for _ in 0..<3 { await Task.yield() }
      working -= 1
      mutex.unlock()
    }

    var isLocked: Bool { mutex.isLocked }
    func lock() async { await mutex.lock() }
    func unlock() { mutex.unlock() }
  }

  @Test func waitersGetTheLockOneAtATimeInTheirOrder() async {
    let workers = Workers()
    await workers.lock()
    var tasks: [Task<Void, Never>] = []
    for number in 0..<50 {
      tasks.append(Task { await workers.work(number) })
      // Makes sure that they wait in this order.
      while workers.requests <= number { await Task.yield() }
    }
    #expect(workers.order.isEmpty)
    workers.unlock()
    for task in tasks { await task.value }
    #expect(workers.order == Array(0..<50))
    #expect(workers.most == 1)
    #expect(!workers.isLocked)
  }

  @Test func preferredWaitersGoFirstAndAlternateWithTheOthers() async {
    let workers = Workers()
    await workers.lock()
    var tasks: [Task<Void, Never>] = []
    for number in 0..<6 {
      tasks.append(Task { await workers.work(number, isPreferred: number >= 3) })
      while workers.requests <= number { await Task.yield() }
    }
    workers.unlock()
    for task in tasks { await task.value }
    #expect(workers.order == [3, 0, 4, 1, 5, 2])
  }

  @Test func aNewWaiterDoesNotOvertakeAnEarlierOne() async {
    let workers = Workers()
    await workers.lock()
    let waiting = Task { await workers.work(1) }
    while workers.requests < 1 { await Task.yield() }
    // Unlocked and requested again before the waiter has run.
    await workers.unlockAndWork(2)
    await waiting.value
    #expect(workers.order == [1, 2])
  }
}

extension AsyncMutexTests.Workers {
  fileprivate func unlockAndWork(_ number: Int) async {
    mutex.unlock()
    await work(number)
  }
}
