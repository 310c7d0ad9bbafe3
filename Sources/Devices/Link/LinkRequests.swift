import EventLoop

/// The commands and requests that wait for a device's next link.
@LoopActor final class LinkRequests {
  /// Called once, with the reason why there is no link, or nil when there is one.
  typealias Body = @LoopActor (_ obstacle: String?) -> Void

  /// How long commands and requests wait at most for a link that is made for them, in seconds.
  static let waitLimit = 60
  /// More requests than this do not wait.
  private static let most = 64

  private var waiting: [(number: UInt64, timer: LoopTimer, body: Body)] = []
  private var lastNumber: UInt64 = 0

  var isEmpty: Bool { waiting.isEmpty }

  /// - Parameter trouble: why there is no link, as far as is known when the time is over.
  /// - Returns: whether the request waits; if it does not, `body` was called.
  func add(for seconds: Int, _ body: @escaping Body, trouble: @escaping @LoopActor () -> String?) -> Bool {
    guard waiting.count < Self.most else {
      body("\(Self.most) requests are waiting for the device already")
      return false
    }
    lastNumber += 1
    let (number, seconds) = (lastNumber, min(seconds, Self.waitLimit))
    let timer = loop.timer(after: .seconds(seconds)) { [weak self] in
      self?.waiting.removeAll { $0.number == number }
      body("the device could not be connected within \(seconds) s\(trouble().map { ": \($0)" } ?? "")")
    }
    waiting.append((number, timer, body))
    return true
  }

  /// What waits for the link can be done, or cannot, and why.
  func resume(_ obstacle: String?) {
    let all = waiting
    waiting = []
    for waiter in all {
      waiter.timer.cancel()
      waiter.body(obstacle)
    }
  }
}
