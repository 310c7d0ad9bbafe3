import DBus
import EventLoop
import Glibc

/// The link to one peripheral, from its being connected to its end: the turn of its operations, who waits
/// for them, and its notifications.
final class Link: @unchecked Sendable {
  // @unchecked: touched by the central alone, on the loop's thread.

  /// One at a time, or one exchange: to a second write to a characteristic, bluetoothd answers `InProgress`.
  let turn = Turn()
  private(set) var hasEnded = false
  /// Operations that bluetoothd has not answered, those included that were given up.
  var unanswered = 0
  /// Runs while the peripheral changes its services.
  var servicesTimer: LoopTimer?
  /// What is under way, and on which characteristic. Weak: its calls hold it, and with the last answer what came with it is let go, descriptors too.
  private weak var exchange: Exchange?
  private var inUse: Characteristic?
  private var streams: [NotificationStream] = []
  private let values: ByteFeed
  private var listening: Set<Characteristic> = []

  /// - Parameter values: brings what is notified by signals.
  init(_ values: ByteFeed) { self.values = values }

  /// The answers to `exchange` are awaited, until the link or the characteristic ends.
  func begin(_ exchange: Exchange, on characteristic: Characteristic) {
    self.exchange = exchange
    inUse = characteristic
  }

  /// Ends what depends on a characteristic that is gone. bluetoothd never answers an operation on one.
  func end(where isGone: (Characteristic) -> Bool) {
    if let exchange, let inUse, isGone(inUse) {
      unanswered -= exchange.pending
      exchange.end(.refused("the characteristic is gone"))
    }
    for characteristic in listening where isGone(characteristic) { stopListening(to: characteristic) }
  }

  func add(_ stream: NotificationStream) {
    if hasEnded { stream.drain() } else { streams.append(stream) }
  }

  /// Values of `characteristic` arrive as signals and go to `handler`.
  func listen(to characteristic: Characteristic, _ handler: @escaping ByteFeed.Handler) {
    guard !hasEnded else { return }
    listening.insert(characteristic)
    values.listen(to: characteristic.path, handler)
  }

  func stopListening(to characteristic: Characteristic) {
    if listening.remove(characteristic) != nil { values.stopListening(to: characteristic.path) }
  }

  /// The link is gone: nobody waits in vain, and after what has come already nothing more is heard.
  func end() {
    hasEnded = true
    exchange?.end()
    for stream in streams { stream.drain() }
    streams.removeAll()
    for characteristic in listening { values.stopListening(to: characteristic.path) }
    listening.removeAll()
  }
}

/// Operations that are under way together, and their answers.
final class Exchange: @unchecked Sendable {
  // @unchecked: touched by the central alone, on the loop's thread.
  typealias Answer = Result<[DBusValue], CentralError>

  private var answers: [Answer?]
  /// Whether they were answered in the order in which they were asked for.
  private(set) var isInOrder = true
  /// Until it was called.
  private var done: (@Sendable (Exchange) -> Void)?

  /// - Parameter done: called once, when all are answered; what follows one that fails counts as failed with it.
  init(of count: Int, _ done: @escaping @Sendable (Exchange) -> Void) {
    answers = Array(repeating: nil, count: count)
    self.done = done
  }

  /// How many are not answered yet.
  var pending: Int { answers.count { $0 == nil } }

  /// One whose link is gone already.
  static func disconnected(of count: Int) -> Exchange {
    let exchange = Exchange(of: count) { _ in }
    exchange.end()
    return exchange
  }

  /// To be asked for when all are there.
  subscript(index: Int) -> Answer { answers[index]! }

  /// One is answered; of no use when it has failed already, with another or with the link.
  func answer(_ index: Int, _ answer: Answer) {
    guard answers[index] == nil else { return }
    if answers[..<index].contains(where: { $0 == nil }) { isInOrder = false }
    answers[index] = answer
    if case .failure(let error) = answer { fail(from: index + 1, error) } else { conclude() }
  }

  /// The link or the characteristic has ended.
  func end(_ error: CentralError = .disconnected) { fail(from: 0, error) }

  /// Whether one failed as operations do whose link is ending.
  var isUnlikely: Bool {
    answers.contains { if case .failure(.unlikely) = $0 { true } else { false } }
  }

  /// It was ending: that is why they failed.
  func linkHasEnded() {
    for index in answers.indices {
      if case .failure(.unlikely) = answers[index] { answers[index] = .failure(.disconnected) }
    }
  }

  private func fail(from first: Int, _ error: CentralError) {
    for index in first..<answers.count where answers[index] == nil { answers[index] = .failure(error) }
    conclude()
  }

  private func conclude() {
    guard let done, !answers.contains(where: { $0 == nil }) else { return }
    self.done = nil
    done(self)
  }
}

/// Notifications by a socket of their own (BlueZ's `AcquireNotify`): a packet is a value, the end of file
/// the end of the link.
final class NotificationStream: @unchecked Sendable {
  // @unchecked: touched on the loop's thread alone.
  private let descriptor: FileDescriptor
  private let onEnd: @Sendable () -> Void
  private let handler: @Sendable ([UInt8]) -> Void
  private var watch: Watch?

  /// The longest value of an attribute (Core Specification Vol 3, Part F, 3.2.9).
  private static let longestValue = 512
  /// More packets than a socket of the usual size (212992 bytes) holds.
  private static let mostPackets = 1024

  /// - Parameter onEnd: called when the socket ends from bluetoothd's side.
  init(
    _ descriptor: FileDescriptor, loop: EventLoop, onEnd: @escaping @Sendable () -> Void,
    _ handler: @escaping @Sendable ([UInt8]) -> Void
  ) {
    self.descriptor = descriptor
    self.onEnd = onEnd
    self.handler = handler
    let fd = descriptor.raw
    _ = fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)
    // One packet a call: the loop calls again while there are more, and other peripherals get their turn.
    watch = loop.watch(fd, for: .readable) { [weak self] readiness in self?.receive(readiness) }
  }

  private enum Packet {
    case value([UInt8])
    /// Nothing more for now.
    case none
    /// An empty value, or the end of the socket.
    case empty
    case failed
  }

  private func receive(_ readiness: Readiness) {
    switch next() {
    case .value(let bytes): handler(bytes)
    // A notification may be empty: only of a closed socket nothing means the end.
    case .empty where readiness.isDisjoint(with: .closed): handler([])
    case .none: break
    case .empty, .failed:
      close()
      onEnd()
    }
  }

  private func next() -> Packet {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.longestValue) { buffer in
      let length = recv(descriptor.raw, buffer.baseAddress, buffer.count, 0)
      if length < 0 { return errno == EAGAIN || errno == EINTR ? .none : .failed }
      return length == 0 ? .empty : .value(Array(buffer[..<length]))
    }
  }

  /// Hands over what the socket still holds, and ends it; the descriptor is closed with the object.
  func drain() {
    guard watch != nil else { return }
    close()
    for _ in 0..<Self.mostPackets {
      guard case .value(let bytes) = next() else { return }
      handler(bytes)
    }
  }

  private func close() {
    watch?.cancel()
    watch = nil
  }
}
