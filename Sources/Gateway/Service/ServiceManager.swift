import CSystemd
import EventLoop

/// Notifies systemd (sd_notify(3)), if it has started the process.
@LoopActor final class ServiceManager {
  private var isReady = false

  /// Tells systemd that the service is ready; then a timer of the loop feeds the watchdog, so that systemd notices when
  /// the loop hangs.
  func ready() {
    guard !isReady else { return }
    isReady = true
    sd_notify(0, "READY=1")
    var microseconds: UInt64 = 0
    if sd_watchdog_enabled(0, &microseconds) > 0 {
      keepAlive(every: .microseconds(Int64(clamping: microseconds / 2)))
    }
  }

  private func keepAlive(every interval: Duration) {
    sd_notify(0, "WATCHDOG=1")
    loop.timer(after: interval) { self.keepAlive(every: interval) }
  }

  func stopping() { sd_notify(0, "STOPPING=1") }

  /// Sets the line of `systemctl status`.
  func status(_ text: String) { sd_notify(0, "STATUS=\(text)") }
}
