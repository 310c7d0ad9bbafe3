import EventLoop
import TestSupport
import Testing

@testable import BlueZ

@Suite struct TurnTests {
  fileprivate actor Workers {
    let turn = Turn()
    var order: [Int] = []
    var working = 0
    var most = 0

    func work(_ number: Int, isPreferred: Bool = false) async {
      await turn.take(isPreferred: isPreferred)
      working += 1
      most = max(most, working)
      order.append(number)
      for _ in 0..<3 { await Task.yield() }
      working -= 1
      turn.pass()
    }

    var isWanted: Bool { turn.isWanted }
    func take() async { await turn.take() }
    func pass() { turn.pass() }
  }

  @Test func oneAtATimeInTheOrderOfAsking() async {
    let workers = Workers()
    await workers.take()
    var tasks: [Task<Void, Never>] = []
    for number in 0..<50 {
      tasks.append(Task { await workers.work(number) })
      // The next asks after this one.
      while await workers.waiting <= number { await Task.yield() }
    }
    #expect(await workers.order.isEmpty)
    await workers.pass()
    for task in tasks { await task.value }
    #expect(await workers.order == Array(0..<50))
    #expect(await workers.most == 1)
    #expect(await !workers.isWanted)
  }

  @Test func whoIsPreferredGoesFirstAndTheOthersInBetween() async {
    let workers = Workers()
    await workers.take()
    var tasks: [Task<Void, Never>] = []
    for number in 0..<6 {
      tasks.append(Task { await workers.work(number, isPreferred: number >= 3) })
      while await workers.waiting <= number { await Task.yield() }
    }
    await workers.pass()
    for task in tasks { await task.value }
    #expect(await workers.order == [3, 0, 4, 1, 5, 2])
  }

  @Test func aNewcomerDoesNotOvertakeTheOneWhoWaits() async {
    let workers = Workers()
    await workers.take()
    let waiting = Task { await workers.work(1) }
    while await workers.waiting < 1 { await Task.yield() }
    // Passed on, and asked for again before the one who waits has run.
    await workers.passAndWork(2)
    await waiting.value
    #expect(await workers.order == [1, 2])
  }
}

extension TurnTests.Workers {
  fileprivate var waiting: Int { turn.waitingCount }

  fileprivate func passAndWork(_ number: Int) async {
    turn.pass()
    await work(number)
  }
}
