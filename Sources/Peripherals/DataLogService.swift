import EventLoop

/// The utility service of a V2 with its data log, as the firmware has it (`MicroBitUtilityService.cpp` of codal-microbit-v2).
/// The log has the headings and rows that were added; it survives the reset button.
package struct DataLogService: Sendable {
  /// The room of a V2's log.
  package static let capacity = 118_780
  /// The time between two replies: the connection interval, as one notification is queued.
  package var interval = Duration.milliseconds(20)
  /// While a reply is being made, requests are ignored.
  private static let work = Duration.milliseconds(2)

  package private(set) var log = Array("Time (seconds),temperature\n0.5,21\n10.5,22\n".utf8)
  private var request: Request?
  /// How many requests were ignored.
  package private(set) var ignored = 0

  private struct Request {
    /// The bytes of all replies, with the job and the counter.
    var replies: ArraySlice<[UInt8]>
    /// When the request came, or the last reply was sent.
    var made: Moment
  }

  /// When the next reply can be sent.
  package var next: Moment? { request.map { $0.made + interval } }

  package init() {}

  /// Adds to the log, as far as there is room.
  package mutating func add(_ text: [UInt8]) { log += text.prefix(Self.capacity - log.count) }
  package mutating func clear() { log = [] }

  /// Whether a reply is queued, which leaves no room for other notifications.
  package var fillsQueue: Bool { request != nil }

  package mutating func reset() { request = nil }

  /// - Returns: whether the length was valid.
  package mutating func write(_ bytes: [UInt8], at now: Moment) -> Bool {
    guard bytes.count <= 20 else { return false }
    // Longer ones are ignored; and those that arrive while a reply is being made.
    guard (1...19).contains(bytes.count) else { return true }
    if let request, now < request.made + Self.work {
      ignored += 1
      return true
    }
    let padded = bytes + Array(repeating: 0, count: 19 - bytes.count)
    let replies = replies(to: padded)
    request = replies.isEmpty ? nil : Request(replies: replies[...], made: now)
    return true
  }

  private func replies(to bytes: [UInt8]) -> [[UInt8]] {
    func number(_ at: Int) -> Int { Int(UInt32(littleEndianBytes: bytes[at..<(at + 4)]) ?? 0) }
    let (job, isCSV) = (bytes[0] & 0xF0, bytes[2] == 2)
    switch bytes[1] {
    case 1: return [[job] + Int32(isCSV ? log.count : 0).littleEndianBytes]
    case 2:
      let (index, count, length) = (number(4), min(number(8), 1 << 17), number(12))
      guard length <= log.count else { return [[job | 0x0F] + Int32(-1001).littleEndianBytes] }
      // What is behind the end is not checked: rubbish.
      let content = (index..<(index + count)).map { $0 < log.count ? log[$0] : 0xFF }
      return stride(from: 0, to: count, by: 19).enumerated().map { counter, start in
        [job | UInt8(counter % 15)] + content[start..<min(start + 19, count)]
      }
    case _: return []
    }
  }

  /// Sends the next reply.
  package mutating func reply(at now: Moment) -> [UInt8]? {
    guard let reply = request?.replies.popFirst() else { return nil }
    request?.made = now
    if request?.replies.isEmpty == true { request = nil }
    return reply
  }
}
