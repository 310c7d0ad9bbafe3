import EventLoop

/// The requests that wait for the next link of a device that is connected on demand.
final class LinkWaiters: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  /// Called once, with the reason why there is no link, or nil when there is one.
  typealias Body = @Sendable (_ obstacle: String?) -> Void

  /// How long commands and requests wait for a link that is made for them, in seconds.
  static let limit = 60
  private static let most = 64

  private let loop: EventLoop
  private var waiting: [(number: UInt64, timer: LoopTimer, body: Body)] = []
  private var count: UInt64 = 0

  init(_ loop: EventLoop) { self.loop = loop }

  /// - Returns: whether it waits; if not, `body` was called.
  func add(_ body: @escaping Body) -> Bool {
    guard waiting.count < Self.most else {
      body("\(Self.most) requests are waiting for the device already")
      return false
    }
    count += 1
    let number = count
    let timer = loop.timer(after: .seconds(Self.limit)) { [weak self] in
      self?.waiting.removeAll { $0.number == number }
      body("the device could not be connected within \(Self.limit) s")
    }
    waiting.append((number, timer, body))
    return true
  }

  func resume(_ obstacle: String?) {
    let all = waiting
    waiting = []
    for waiter in all {
      waiter.timer.cancel()
      waiter.body(obstacle)
    }
  }
}
