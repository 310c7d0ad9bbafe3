import CLinux
import EventLoop
import Glibc

/// Reports which micro:bits are plugged in, whenever that changes.
@LoopActor package final class SerialPorts {
  private static let events = UInt32(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO) | UInt32(IN_ONLYDIR)
  /// How often the folder is read if the kernel cannot report its changes.
  private static let interval = Duration.seconds(5)

  private let folder: String
  private let changed: @LoopActor ([MicrobitPort]) -> Void
  private let descriptor: Int32
  private var watch: Watch?
  private var timer: LoopTimer?
  private var ports: [MicrobitPort]?

  /// Calls `changed` soon with what is plugged in now, and then with what is after each change, until ``stop()``.
  package init(
    in folder: String = MicrobitPort.folder, changed: @escaping @LoopActor ([MicrobitPort]) -> Void
  ) {
    self.folder = folder
    self.changed = changed
    descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    if descriptor >= 0 {
      watch = loop.watch(descriptor, for: .readable) { [weak self] _ in self?.readEvents() }
    }
    timer = loop.timer(after: .zero) { [weak self] in self?.update() }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// No more calls.
  package func stop() {
    watch?.cancel()
    watch = nil
    timer?.cancel()
    timer = nil
  }

  private func readEvents() {
    let capacity = 4096
    withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 8) { buffer in
      while read(descriptor, buffer.baseAddress, capacity) > 0 {}
    }
    update()
  }

  private func update() {
    watchFolders()
    if descriptor < 0 {
      timer = loop.timer(after: Self.interval) { [weak self] in self?.update() }
    }
    let now = MicrobitPort.all(in: folder)
    guard now != ports else { return }
    ports = now
    changed(now)
  }

  /// udev removes the folder, and the one it is in, with the last port. Before the folder is read: a change that follows is
  /// then reported.
  private func watchFolders() {
    guard descriptor >= 0 else { return }
    let parts = folder.split(separator: "/")
    for count in max(1, parts.count - 2)...max(1, parts.count) {
      inotify_add_watch(descriptor, "/" + parts.prefix(count).joined(separator: "/"), Self.events)
    }
  }
}
