import EventLoop
import Glibc

/// What Ctrl-C and closing the terminal do: end the process, unless another action is set.
@LoopActor final class Interruption {
  var action: (Int32) -> Void = { exit(128 + $0) }

  init(_ signals: [Int32] = [SIGTERM, SIGINT, SIGHUP]) {
    loop.signals(signals) { [self] in action($0) }
  }
}
