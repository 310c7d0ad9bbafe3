import EventLoop

/// Joins the notifications of a peripheral into frames, for example into the lines of a program. Pure.
///
/// A program that sends lines is known by its first line end. Until then half a second is waited from the first
/// notification; if no line end has come, each notification is a frame, until one comes. A program that has sent a line may
/// send others without an end: if two seconds pass from a frame's first notification, each notification is a frame until the
/// next line end.
struct FrameAssembler: Sendable {
  /// What stands between two delimiters, without NULs at its ends; never empty.
  struct Frame: Equatable, Sendable {
    var bytes: [UInt8]
    /// Whether the end of the frame may be missing: a V1 drops what is beyond the 20 bytes of one send, with the line end
    /// (lancaster-university/codal-microbit-v2#105).
    var isCut = false
    /// Whether it is the first part of a frame that is longer than ``FrameAssembler/longest``.
    var isTooLong = false
  }

  private enum Mode {
    /// Before the first delimiter.
    case undecided
    /// No delimiter has come in time.
    case notifications
    case delimited
  }

  /// The maximum length; a longer frame is split.
  static let longest = 1024
  /// A notification of this length, in bytes, may go on in the next one.
  static let full = 20
  /// The time until an incomplete frame is ended: from the first notification while it is not known whether there are delimiters,
  /// then from the last one.
  private static let patience = Duration.milliseconds(500)
  /// The time from the first notification of a frame until its delimiter has come, if there are delimiters.
  private static let longPatience = Duration.seconds(2)

  private let delimiter: [UInt8]
  /// Whether `\n` and `\r` are delimiters, in any number.
  private let hasLines: Bool
  private var buffer: [UInt8] = []
  /// Where, in the buffer, notifications end that were not full.
  private var ends: [Int] = []
  private var mode = Mode.undecided
  private var isLastFull = false
  /// When the first and the last notification of the buffer came.
  private var (first, last): (Moment?, Moment?) = (nil, nil)
  /// Whether the beginning of the frame was split off.
  private var isSplit = false

  init(delimiter: String) {
    self.delimiter = Array(delimiter.utf8)
    hasLines = delimiter == "\n" || delimiter == "\r\n"
  }

  /// When to call ``end(at:)``; nil: there is nothing to end.
  var deadline: Moment? {
    guard !buffer.isEmpty, let first, let last else { return nil }
    return switch mode {
    case .undecided: first + Self.patience
    case .delimited where !ends.isEmpty: min(first + Self.longPatience, last + Self.patience)
    case .delimited, .notifications: last + Self.patience
    }
  }

  /// - Returns: the frames that are complete now.
  mutating func append(_ notification: [UInt8], at now: Moment) -> [Frame] {
    isLastFull = notification.count == Self.full
    var frames: [Frame] = []
    for byte in notification {
      buffer.append(byte)
      if isDelimited {
        mode = .delimited
        buffer.removeLast(hasLines ? 1 : delimiter.count)
        flush(into: &frames)
      } else if buffer.count == Self.longest {
        flush(into: &frames, isCut: true, isTooLong: true)
        isSplit = true
        if mode == .undecided { mode = .notifications }
      }
    }
    (first, last) = (buffer.isEmpty ? nil : first ?? now, now)
    if !isLastFull, mode == .notifications { flush(into: &frames) }
    // A notification may be empty.
    if !isLastFull, ends.last ?? 0 < buffer.count { ends.append(buffer.count) }
    return frames
  }

  /// Ends an incomplete frame: nothing more has arrived in time.
  mutating func end(at now: Moment) -> [Frame] {
    var frames: [Frame] = []
    if mode == .notifications || mode == .delimited && last.map({ now >= $0 + Self.patience }) ?? true {
      flush(into: &frames, isCut: isLastFull)
      return frames
    }
    mode = .notifications
    let (all, ends) = (buffer, ends)
    var start = 0
    for end in ends {
      buffer = Array(all[start..<end])
      flush(into: &frames)
      start = end
    }
    (buffer, first) = (Array(all[start...]), now)
    return frames
  }

  /// Ends all: no notification follows.
  mutating func endAll() -> [Frame] {
    var frames: [Frame] = []
    while let deadline = last.map({ $0 + Self.patience }), !buffer.isEmpty { frames += end(at: deadline) }
    return frames
  }

  private var isDelimited: Bool {
    if hasLines { return buffer.last == UInt8(ascii: "\n") || buffer.last == UInt8(ascii: "\r") }
    return buffer.count >= delimiter.count && buffer.suffix(delimiter.count).elementsEqual(delimiter)
  }

  private mutating func flush(into frames: inout [Frame], isCut: Bool = false, isTooLong: Bool = false) {
    var bytes = buffer
    (buffer, ends, first) = ([], [], nil)
    if bytes.first == 0 || bytes.last == 0 {
      bytes = Array(bytes.drop { $0 == 0 }.reversed().drop { $0 == 0 }.reversed())
    }
    if !bytes.isEmpty {
      frames.append(Frame(bytes: bytes, isCut: isCut || isSplit, isTooLong: isTooLong && !isSplit))
    }
    isSplit = false
  }
}
