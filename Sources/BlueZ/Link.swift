import DBus
import EventLoop
import Glibc

/// The link to one peripheral, from its being connected to its end: the turn of its operations, who waits
/// for them, and its notifications.
final class Link: @unchecked Sendable {
  // @unchecked: touched by the central alone, on the loop's thread.

  /// One GATT operation at a time: bluetoothd answers `InProgress` to a second one.
  let turn = Turn()
  private(set) var hasEnded = false
  private var waiting: [ObjectIdentifier: Waiter<OperationResult>] = [:]
  private var streams: [NotificationStream] = []
  private var values: [String: @Sendable ([UInt8]) -> Void] = [:]

  typealias OperationResult = Result<[DBusValue], CentralError>

  /// Counts `waiter` among those who are told when the link ends. It must not have ended.
  func add(_ waiter: Waiter<OperationResult>) {
    waiting[ObjectIdentifier(waiter)] = waiter
  }

  func remove(_ waiter: Waiter<OperationResult>) { waiting[ObjectIdentifier(waiter)] = nil }

  func add(_ stream: NotificationStream) {
    if hasEnded { stream.close() } else { streams.append(stream) }
  }

  /// Values of `characteristic` arrive as signals and go to `handler`.
  func listen(to characteristic: String, _ handler: @escaping @Sendable ([UInt8]) -> Void) {
    values[characteristic] = handler
  }

  func received(_ bytes: [UInt8], from characteristic: String) { values[characteristic]?(bytes) }

  /// The link is gone: nobody waits in vain, and nothing more is heard.
  func end() {
    hasEnded = true
    for waiter in waiting.values { waiter.resume(.success(.failure(.disconnected))) }
    for stream in streams { stream.close() }
    waiting.removeAll()
    streams.removeAll()
    values.removeAll()
  }
}

/// Notifications by a socket of their own (BlueZ's `AcquireNotify`): a packet is a value, the end of file
/// the end of the link.
final class NotificationStream: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone.
  private let descriptor: FileDescriptor
  private var watch: Watch?

  private enum Packet {
    case value([UInt8])
    case none
    case end
  }

  /// The longest value of an attribute (Core Specification Vol 3, Part F, 3.2.9).
  private static let longestValue = 512

  /// - Parameter onEnd: called when the socket ends from bluetoothd's side.
  init(
    _ descriptor: FileDescriptor, loop: EventLoop, onEnd: @escaping @Sendable () -> Void,
    _ handler: @escaping @Sendable ([UInt8]) -> Void
  ) {
    self.descriptor = descriptor
    let fd = descriptor.raw
    _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)
    watch = loop.watch(fd, for: .readable) { [weak self] readiness in
      // One packet a call: the loop calls again while there are more, and other peripherals get their turn.
      let packet = withUnsafeTemporaryAllocation(byteCount: Self.longestValue, alignment: 1) {
        buffer -> Packet in
        let length = recv(fd, buffer.baseAddress, buffer.count, 0)
        if length > 0 { return .value([UInt8](buffer[..<length])) }
        if length < 0 { return errno == EAGAIN || errno == EINTR ? .none : .end }
        // A notification may be empty: only of a closed socket nothing means the end.
        return readiness.isDisjoint(with: .closed) ? .value([]) : .end
      }
      switch packet {
      case .value(let bytes): handler(bytes)
      case .end:
        self?.close()
        onEnd()
      case .none: break
      }
    }
  }

  /// Ends it; the descriptor is closed with the object.
  func close() {
    watch?.cancel()
    watch = nil
  }
}
