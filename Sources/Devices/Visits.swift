import BlueZ
import EventLoop
import Log

/// The visits to a device that is connected on demand, and the requests that wait for the next one. Runs
/// ``VisitSchedule``.
final class Visits: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  private var schedule: VisitSchedule
  private var timer: LoopTimer?
  private let waiters: LinkWaiters
  private unowned let session: DeviceSession

  init(every interval: Duration, of session: DeviceSession) {
    schedule = VisitSchedule(interval: interval)
    waiters = LinkWaiters(session.context.loop)
    self.session = session
  }

  /// Whether the device was visited lately.
  var isOnline: Bool { schedule.isOnline }

  // MARK: Inputs

  /// The device is connected, and its values are read.
  func visited() { perform(schedule.visited(at: .now)) }

  /// What waits for the link can be done.
  func linkUp() { waiters.resume(nil) }

  func visitedElsewhere() { perform(schedule.visitedElsewhere(at: .now)) }

  func stop(_ reason: String) {
    timer?.cancel()
    perform(schedule.stop())
    waiters.resume(reason)
  }

  private func perform(_ actions: [VisitSchedule.Action]) {
    for action in actions {
      switch action {
      case .connect: session.demanded()
      case .online: session.becameOnline()
      case .offline: session.device.handle(.offline)
      case .setTimer(let delay):
        timer?.cancel()
        timer = session.context.loop.timer(after: delay) { [weak self] in
          guard let self else { return }
          perform(schedule.timer(at: .now))
        }
      }
    }
  }

  // MARK: Demand

  /// A command waits for a link.
  /// - Parameter deadline: the end of its time to live; it waits for the next visit if that comes first.
  func demand(before deadline: Moment?) {
    if let deadline, schedule.isDue(before: deadline) { return }
    session.demanded()
  }

  /// Calls `body` when there is a link, or with the reason why there is none.
  func awaitLink(_ body: @escaping LinkWaiters.Body) {
    if waiters.add(body) { session.demanded() }
  }
}
