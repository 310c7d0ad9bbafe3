/// Joins the notifications of a peripheral into frames, for example into the lines of a program.
///
/// A program that sends lines is known by its first line end. Until then half a second is waited from the first
/// notification; if no line end has come, each notification is a frame, until one comes.
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
    /// Before the first delimiter. `ends`: where, in the buffer, notifications end that were not full.
    case undecided(ends: [Int])
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
  static let patience = Duration.milliseconds(500)

  private let delimiter: [UInt8]
  /// Whether `\n` and `\r` are delimiters, in any number.
  private let hasLines: Bool
  private var buffer: [UInt8] = []
  private var mode = Mode.undecided(ends: [])
  private var isLastFull = false
  /// Whether the beginning of the frame was split off.
  private var isSplit = false

  init(delimiter: String) {
    self.delimiter = Array(delimiter.utf8)
    hasLines = delimiter == "\n" || delimiter == "\r\n"
  }

  /// Whether ``end()`` has something to end after ``patience``.
  var isIncomplete: Bool { !buffer.isEmpty }

  private var isDelimiting: Bool { if case .delimited = mode { true } else { false } }

  /// Whether it is not known yet if there are delimiters.
  var isUndecided: Bool { if case .undecided = mode { true } else { false } }

  /// - Returns: the frames that are complete now.
  mutating func append(_ notification: [UInt8]) -> [Frame] {
    isLastFull = notification.count == Self.full
    var frames: [Frame] = []
    for byte in notification {
      buffer.append(byte)
      if isDelimited {
        if !isDelimiting { mode = .delimited }
        buffer.removeLast(hasLines ? 1 : delimiter.count)
        flush(into: &frames)
      } else if buffer.count == Self.longest {
        flush(into: &frames, isCut: true, isTooLong: true)
        isSplit = true
        if isUndecided { mode = .notifications }
      }
    }
    guard !isLastFull else { return frames }
    switch mode {
    // A notification may be empty.
    case .undecided(let ends) where ends.last ?? 0 == buffer.count: break
    case .undecided(let ends): mode = .undecided(ends: ends + [buffer.count])
    case .notifications: flush(into: &frames)
    case .delimited: break
    }
    return frames
  }

  /// Ends an incomplete frame: nothing more has arrived in time.
  mutating func end() -> [Frame] {
    var frames: [Frame] = []
    guard case .undecided(let ends) = mode else {
      flush(into: &frames, isCut: isLastFull)
      return frames
    }
    mode = .notifications
    let all = buffer
    var start = 0
    for end in ends {
      buffer = Array(all[start..<end])
      flush(into: &frames)
      start = end
    }
    buffer = Array(all[start...])
    return frames
  }

  private var isDelimited: Bool {
    if hasLines { return buffer.last == UInt8(ascii: "\n") || buffer.last == UInt8(ascii: "\r") }
    return buffer.count >= delimiter.count && buffer.suffix(delimiter.count).elementsEqual(delimiter)
  }

  private mutating func flush(into frames: inout [Frame], isCut: Bool = false, isTooLong: Bool = false) {
    var bytes = buffer
    buffer = []
    if bytes.first == 0 || bytes.last == 0 {
      bytes = Array(bytes.drop { $0 == 0 }.reversed().drop { $0 == 0 }.reversed())
    }
    if !bytes.isEmpty {
      frames.append(Frame(bytes: bytes, isCut: isCut || isSplit, isTooLong: isTooLong && !isSplit))
    }
    isSplit = false
  }
}
