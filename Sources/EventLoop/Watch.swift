import CLinux

/// What a descriptor is ready for, or is watched for: `epoll`'s event bits.
public struct Readiness: OptionSet, Sendable {
  /// As epoll_ctl(2) has them.
  public let rawValue: UInt32
  /// For `OptionSet` and what `epoll_wait` brings: bits without a name here are kept.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// There is something to read, the end of it included; of a listening socket: to accept.
  public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
  /// There is room to write; of a connecting socket: it has connected, or failed to.
  public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
  /// The other end has hung up, or the descriptor is in error. Always reported.
  public static let closed = Readiness(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
}

/// A descriptor under watch. It does not own the descriptor: cancel the watch, then close.
public final class Watch: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone, which the loop checks.
  let fd: Int32
  /// What its events are known by: the descriptor's number in the low half, the watch's own in the high one.
  let ticket: UInt64
  let handler: @Sendable (Readiness) -> Void
  private weak var loop: EventLoop?

  /// What is watched for; a change takes effect at once.
  public var interest: Readiness {
    didSet {
      if interest != oldValue { loop?.control(EPOLL_CTL_MOD, self) }
    }
  }

  init(
    fd: Int32, ticket: UInt64, interest: Readiness, handler: @escaping @Sendable (Readiness) -> Void,
    loop: EventLoop
  ) {
    self.fd = fd
    self.ticket = ticket
    self.interest = interest
    self.handler = handler
    self.loop = loop
  }

  /// Ends the watch. Harmless when repeated.
  public func cancel() {
    loop?.forget(self)
    loop = nil
  }
}
