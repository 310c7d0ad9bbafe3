import CLinux
import Glibc

/// Signals of the process, delivered by the loop.
public enum Signals {
  /// Blocks the default handling of `signals` on this thread, until ``EventLoop/signals(_:_:)`` delivers them.
  public static func block(_ signals: [Int32]) {
    var set = mask(signals)
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Runs `body` while the signals that end a process are blocked, which a thread that `body` starts inherits: they are
  /// left to the thread of the loop.
  static func blockedForNewThread<T>(_ body: () -> T) -> T {
    var (set, before) = (mask([SIGTERM, SIGINT, SIGHUP]), sigset_t())
    pthread_sigmask(SIG_BLOCK, &set, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return body()
  }

  fileprivate static func mask(_ signals: [Int32]) -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    return set
  }
}

extension EventLoop {
  /// Calls `handler` with each of the `signals` that arrives, until the process ends. Until then each has its default
  /// handling, unless it was blocked before.
  @LoopActor public func signals(_ signals: [Int32], _ handler: @escaping @LoopActor (Int32) -> Void) {
    Signals.block(signals)
    var set = Signals.mask(signals)
    let fd = signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
    precondition(fd >= 0, "no signalfd: errno \(errno)")
    _ = watch(fd, for: .readable) { _ in
      var info = signalfd_siginfo()
      while read(fd, &info, MemoryLayout<signalfd_siginfo>.size) == MemoryLayout<signalfd_siginfo>.size {
        handler(Int32(info.ssi_signo))
      }
    }
  }
}
