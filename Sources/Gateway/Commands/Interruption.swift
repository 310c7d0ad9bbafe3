import EventLoop
import Glibc

/// What Ctrl-C and closing the terminal do: end the process, unless another action is set.
@LoopActor final class Interruption {
  var action: (Int32) -> Void = { exit(128 + $0) }

  init(_ signals: [Int32] = [SIGTERM, SIGINT, SIGHUP]) {
    loop.signals(signals) { [self] in action($0) }
  }
}

/// Waits that Ctrl-C ends.
@LoopActor final class Pause {
  private var waiter: Waiter<Void>?
  private(set) var isInterrupted = false

  init(_ interruption: Interruption) {
    interruption.action = { [weak self] _ in
      self?.isInterrupted = true
      self?.waiter?.resume(.success(()))
    }
  }

  func wait(_ duration: Duration) async {
    let waiter = Waiter<Void>()
    self.waiter = waiter
    if isInterrupted { return }
    _ = try? await waiter.value(within: duration)
  }
}
