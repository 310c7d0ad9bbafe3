import CLinux
import Glibc

/// Signals of the process, delivered by the loop.
public enum Signals {
  /// Blocks the default handling of `signals`, for ``EventLoop/signals(_:_:)`` to deliver them. Call it before any
  /// thread starts, as threads inherit the mask.
  public static func block(_ signals: [Int32]) {
    var set = mask(signals)
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  fileprivate static func mask(_ signals: [Int32]) -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    return set
  }
}

extension EventLoop {
  /// Calls `handler` with each of the blocked `signals` that arrives, until the process ends.
  @LoopActor public func signals(_ signals: [Int32], _ handler: @escaping @LoopActor (Int32) -> Void) {
    var set = Signals.mask(signals)
    let fd = signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
    _ = watch(fd, for: .readable) { _ in
      var info = signalfd_siginfo()
      while read(fd, &info, MemoryLayout<signalfd_siginfo>.size) == MemoryLayout<signalfd_siginfo>.size {
        handler(Int32(info.ssi_signo))
      }
    }
  }
}
