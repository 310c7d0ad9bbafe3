import CLinux

/// The readiness of a descriptor: `epoll`'s event bits.
public struct Readiness: OptionSet, Sendable {
  /// The bits of epoll_ctl(2).
  public let rawValue: UInt32
  /// Required by `OptionSet` and `epoll_wait`: bits without a name are kept.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Data or the end of file can be read; a listening socket: a connection can be accepted.
  public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
  /// Data can be written; a connecting socket: it has connected or failed.
  public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
  /// The other end has hung up, or the descriptor is in error. Always reported.
  public static let closed = Readiness(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
}

/// A watched descriptor, which it does not own: cancel the watch before closing the descriptor.
@LoopActor public final class Watch {
  let fd: Int32
  /// Identifies its events: the descriptor in the lower half, the watch's number in the upper half.
  let token: UInt64
  let handler: @LoopActor (Readiness) -> Void

  /// What to watch for; a change takes effect at once.
  public var interest: Readiness {
    didSet {
      if interest != oldValue { loop.control(EPOLL_CTL_MOD, self) }
    }
  }

  init(
    fd: Int32, token: UInt64, interest: Readiness, handler: @escaping @LoopActor (Readiness) -> Void
  ) {
    self.fd = fd
    self.token = token
    self.interest = interest
    self.handler = handler
  }

  /// Ends the watch. Harmless when repeated.
  public func cancel() { loop.remove(self) }
}

/// The watches of a loop, by descriptor.
@LoopActor struct WatchTable {
  private var watches: [Watch?] = []
  /// The number of watches made.
  private var count: UInt32 = 0

  nonisolated init() {}

  /// Identifies the events of a new watch.
  mutating func makeToken(_ fd: Int32) -> UInt64 {
    count &+= 1
    return UInt64(count) << 32 | UInt64(UInt32(bitPattern: fd))
  }

  mutating func insert(_ watch: Watch) {
    let index = Int(watch.fd)
    if index >= watches.count {
      watches.append(contentsOf: repeatElement(nil, count: index - watches.count + 16))
    }
    watches[index] = watch
  }

  /// - Returns: whether it was there.
  mutating func remove(_ watch: Watch) -> Bool {
    guard watches[Int(watch.fd)] === watch else { return false }
    watches[Int(watch.fd)] = nil
    return true
  }

  /// The watch that an event is for. The event may be older than the watch: an earlier handler of this iteration may
  /// have closed the descriptor, and its number may have been reused.
  subscript(token: UInt64) -> Watch? {
    let index = Int(UInt32(truncatingIfNeeded: token))
    guard index < watches.count, let watch = watches[index], watch.token == token else { return nil }
    return watch
  }
}
