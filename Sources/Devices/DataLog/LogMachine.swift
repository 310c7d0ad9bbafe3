import EventLoop

/// Reads the data log of a micro:bit V2 by its utility service (`MicroBitUtilityService.cpp` of codal-microbit-v2), from an
/// offset up to the length that the log has at the beginning. Pure.
///
/// The service works on one request at a time and ignores others meanwhile, so that the next one follows the last reply, or
/// 5 s without a reply. It checks no index: bytes behind the end of the log are arbitrary. A log only grows until it is
/// cleared, which is noticed by its length, or by its last known bytes, which are read again.
struct LogMachine: Sendable {
  /// The most bytes of a batch: four replies.
  static let batch = 76
  /// How many bytes of what is known are read again.
  static let tailSize = 32
  /// No log is longer: it has room for 118,780 bytes.
  static let capacity = 1 << 17
  static let replyLimit = Duration.seconds(5)
  /// The attempts in a row that may fail.
  static let mostFailures = 3
  /// How often the log may be cleared while it is read.
  private static let mostClears = 3
  /// The time between a batch and the next one, in which the micro:bit's notifications have the queue to themselves: as long
  /// as the batch has taken.
  static let pauses = Duration.milliseconds(20)...Duration.milliseconds(500)

  enum Action: Equatable {
    /// Write these bytes to the characteristic.
    case write([UInt8])
    case length(Int)
    /// The log was cleared: it is read from its beginning.
    case cleared
    /// The next bytes of the log.
    case take([UInt8])
    /// All is read; or why it is not. Nothing follows.
    case end(LogFailure?)
  }

  private enum Step {
    case length
    /// The tail is read again.
    case check
    case batch
  }

  private enum State {
    /// Replies to the last request are awaited, until the deadline. → any
    case waiting
    /// A reply to the last request was not as expected: nothing is requested until the deadline, when the service has nothing
    /// more to send. → waiting, ended
    case void
    /// The next request is due at the deadline. → waiting
    case pausing
    /// → none
    case ended
  }

  /// How many bytes of the log are known; and the last of them.
  private(set) var offset: Int
  private var tail: [UInt8]
  /// Whether the peripheral has other notifications that need the queue too.
  private let hasPauses: Bool
  private var state = State.pausing
  private var step = Step.length
  private(set) var deadline: Moment?
  private var sent: Moment?
  private var length = 0
  /// The high nibble of requests and their replies.
  private(set) var job: UInt8
  private var received: [UInt8] = []
  private var replies: UInt8 = 0
  private var failures = 0
  private var clears = 0

  /// - Parameters:
  ///   - tail: the last bytes before the offset, at most ``tailSize``.
  ///   - job: that of the last request, to which there may be late replies.
  init(offset: Int, tail: [UInt8], job: UInt8 = 0, hasPauses: Bool) {
    (self.offset, self.tail, self.job, self.hasPauses) = (offset, tail, job, hasPauses)
  }

  mutating func begin(at now: Moment) -> [Action] { request(.length, at: now) }

  /// - Parameter failure: why reading cannot go on; nil: all is read.
  mutating func end(_ failure: LogFailure?) -> [Action] {
    if case .ended = state { return [] }
    (state, deadline) = (.ended, nil)
    return [.end(failure)]
  }

  mutating func deadlineIsOver(at now: Moment) -> [Action] {
    switch state {
    case .waiting, .void: retry(.silent, at: now)
    case .pausing: request(step, at: now)
    case .ended: []
    }
  }

  // MARK: Requests

  /// How many bytes the present step reads.
  private var expected: Int { step == .check ? tail.count : min(Self.batch, length - offset) }

  private mutating func request(_ step: Step, at now: Moment) -> [Action] {
    (self.step, state, received, replies, sent) = (step, .waiting, [], 0, now)
    deadline = now + Self.replyLimit
    job &+= 0x10
    var bytes = [job, step == .length ? 1 : 2, Self.csv]
    if step != .length {
      bytes.append(0)
      bytes += Self.bytes(step == .check ? offset - tail.count : offset)
      bytes += Self.bytes(expected)
      bytes += Self.bytes(length)
    }
    return [.write(bytes)]
  }

  private static let csv: UInt8 = 2

  private static func bytes(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }

  private mutating func pause(before step: Step, _ time: Duration, at now: Moment) -> [Action] {
    guard time > .zero else { return request(step, at: now) }
    (self.step, state, deadline) = (step, .pausing, now + time)
    return []
  }

  /// Begins again with the length, unless too many attempts have failed.
  private mutating func retry(_ failure: LogFailure, after time: Duration = .zero, at now: Moment) -> [Action]
  {
    failures += 1
    return failures < Self.mostFailures ? pause(before: .length, time, at: now) : end(failure)
  }

  // MARK: Replies

  mutating func reply(_ bytes: [UInt8], at now: Moment) -> [Action] {
    // A reply to an earlier request is late.
    guard case .waiting = state, let head = bytes.first, head & 0xF0 == job else { return [] }
    if head & 0x0F == 0x0F {
      let code = Int(Int32(truncatingIfNeeded: Self.number(bytes[1...])))
      // -1001: the log is shorter than it was.
      return retry(.error(code), after: code == -1001 ? .zero : .seconds(1), at: now)
    }
    deadline = now + Self.replyLimit
    guard head & 0x0F == replies else { return void() }
    return switch step {
    case .length: bytes.count == 5 ? lengthIs(Self.number(bytes[1...]), at: now) : void()
    case .check, .batch: take(bytes[1...], at: now)
    }
  }

  private mutating func void() -> [Action] {
    state = .void
    return []
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  private mutating func lengthIs(_ length: Int, at now: Moment) -> [Action] {
    guard length <= Self.capacity else { return end(.impossible) }
    self.length = length
    if length < offset { return [.length(length)] + clear(at: now) }
    if offset > 0 { return [.length(length)] + request(.check, at: now) }
    return [.length(length)] + next(at: now)
  }

  private mutating func clear(at now: Moment) -> [Action] {
    clears += 1
    guard clears <= Self.mostClears else { return end(.changing) }
    (offset, tail) = (0, [])
    return [.cleared] + next(at: now)
  }

  private mutating func next(after time: Duration = .zero, at now: Moment) -> [Action] {
    offset < length ? pause(before: .batch, time, at: now) : end(nil)
  }

  private mutating func take(_ part: ArraySlice<UInt8>, at now: Moment) -> [Action] {
    received += part
    replies = (replies + 1) % 15
    // Only the last reply of a batch is shorter.
    let isWhole = received.count == expected
    guard isWhole || received.count < expected && part.count == 19 else { return void() }
    guard isWhole else { return [] }
    if step == .check { return received == tail ? next(at: now) : clear(at: now) }
    failures = 0
    offset += received.count
    tail = (tail + received).suffix(Self.tailSize)
    let took = sent.map { $0.duration(to: now) } ?? .zero
    let time = hasPauses ? min(max(took, Self.pauses.lowerBound), Self.pauses.upperBound) : .zero
    return [.take(received)] + next(after: time, at: now)
  }
}

/// Why a log was not read to its end.
package enum LogFailure: Sendable, Equatable, CustomStringConvertible {
  case linkLost
  /// Another gateway has the device, or has read further.
  case overtaken
  /// There were no replies, or not the ones that belong to the request.
  case silent
  /// The length is greater than any log's.
  case impossible
  /// It was cleared again and again, or pretends so.
  case changing
  /// The service has answered with a code of the firmware (`ErrorNo.h` of codal-core).
  case error(Int)
  /// The characteristic cannot be used, and why.
  case unusable(String)

  package var description: String {
    switch self {
    case .linkLost: "the link was lost"
    case .overtaken: "another gateway has read further"
    case .silent: "it does not answer requests for its log"
    case .impossible: "it reports an impossible length of its log"
    case .changing: "its log changes while it is read"
    case .error(let code): "it cannot read its log (error \(code))"
    case .unusable(let reason): reason
    }
  }
}
