import EventLoop

/// When a device is visited and online, and the requests that wait for its next link. Runs ``VisitSchedule``.
@LoopActor final class Visits {
  /// Called once, with the reason why there is no link, or nil when there is one.
  typealias Body = @LoopActor (_ obstacle: String?) -> Void

  /// How long commands and requests wait for a link that is made for them, in seconds.
  static let waitLimit = 60
  /// More requests than this do not wait.
  private static let mostWaiting = 64

  private var schedule: VisitSchedule
  private var timer = DeadlineTimer()
  private var waiting: [(number: UInt64, timer: LoopTimer, body: Body)] = []
  private var waitCount: UInt64 = 0
  private unowned let session: LinkSession

  /// - Parameter interval: nil: it is not connected on demand.
  init(every interval: Duration?, of session: LinkSession) {
    schedule = VisitSchedule(interval: interval)
    self.session = session
  }

  /// Whether the device has a link, or had one lately and gets another one.
  var isOnline: Bool { schedule.isOnline }
  /// Whether a visit takes place before `deadline` anyway.
  func isDue(before deadline: Moment) -> Bool { schedule.isDue(before: deadline) }

  // MARK: Inputs

  /// The device is connected, and its values are read.
  func visited() { perform(schedule.visited(at: .now)) }
  func visitedElsewhere() { perform(schedule.visitedElsewhere(at: .now)) }
  /// The device gives up its link for others, and is to get another one after `wait`.
  func turnEnds(nextAfter wait: Duration) {
    schedule.turnEnds(nextAfter: wait, at: .now)
    perform([])
  }
  func linkEnded() { perform(schedule.linkEnded()) }

  func stop(_ reason: String) {
    perform(schedule.stop())
    resume(reason)
  }

  private func perform(_ actions: [VisitSchedule.Action]) {
    timer.set(schedule.deadline) { [weak self] in
      guard let self else { return }
      perform(schedule.timer(at: .now))
    }
    for action in actions {
      switch action {
      case .connect: session.visitIsDue()
      case .online: session.becameOnline()
      case .offline: session.device.handle(.offline)
      }
    }
  }

  // MARK: Requests

  /// Calls `body` when there is a link, or with the reason why there is none.
  func awaitLink(_ body: @escaping Body) {
    guard waiting.count < Self.mostWaiting else {
      return body("\(Self.mostWaiting) requests are waiting for the device already")
    }
    waitCount += 1
    let number = waitCount
    let timer = loop.timer(after: .seconds(Self.waitLimit)) { [weak self] in
      self?.waiting.removeAll { $0.number == number }
      body("the device could not be connected within \(Self.waitLimit) s")
    }
    waiting.append((number, timer, body))
    session.needsLinkNow()
  }

  /// What waits for the link can be done, or cannot.
  func resume(_ obstacle: String?) {
    let all = waiting
    waiting = []
    for waiter in all {
      waiter.timer.cancel()
      waiter.body(obstacle)
    }
  }
}
