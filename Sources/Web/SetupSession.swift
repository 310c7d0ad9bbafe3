import Log

/// Who may set the gateway up in a browser: whoever has the one-time code. The first submission that is carried out ends it.
/// Pure.
struct SetupSession: Sendable {
  enum Answer: Sendable, Equatable {
    case right
    case wrong
    /// The last try was wrong too: there is another code now.
    case renewed
    /// Another browser's answers are being tried.
    case busy
    /// Another browser has set the gateway up.
    case done(Timestamp)
  }

  /// How many wrong codes are answered before the code is replaced by another one.
  static let tries = 5

  /// Eight characters, which have 40 bits; nil: none is valid.
  private(set) var code: String?
  private var wrong = 0
  private var isTrying = false
  private var doneAt: Timestamp?

  /// Crockford's digits: none looks like another one.
  private static let digits = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

  /// The code. It is another one if the last has ended.
  mutating func open(using random: inout some RandomNumberGenerator) -> String {
    code ?? renew(using: &random)
  }

  /// The code is no longer valid. Answers that are being tried still are tried.
  mutating func end() { code = nil }

  private mutating func renew(using random: inout some RandomNumberGenerator) -> String {
    let number: UInt64 = random.next()
    let bytes = (0..<8).map { Self.digits[Int(truncatingIfNeeded: number >> (5 * $0) & 31)] }
    let new = String(decoding: bytes, as: UTF8.self)
    (code, wrong) = (new, 0)
    return new
  }

  /// - Parameter submits: whether answers come with the code. If it is `right`, they are tried, and
  ///   ``endSubmission(doneAt:)`` follows.
  mutating func check(
    _ given: String, submits: Bool = false, using random: inout some RandomNumberGenerator
  ) -> Answer {
    guard let code else { return .wrong }
    guard AccessRules.isEqual(Self.plain(given), Array(code.utf8)) else {
      wrong += 1
      guard wrong >= Self.tries else { return .wrong }
      _ = renew(using: &random)
      return .renewed
    }
    if let doneAt { return .done(doneAt) }
    if submits, isTrying { return .busy }
    isTrying = isTrying || submits
    return .right
  }

  /// - Parameter time: when it was carried out; nil: it was not.
  mutating func endSubmission(doneAt time: Timestamp?) {
    isTrying = false
    doneAt = time
  }

  /// What was typed, as people mistake and separate characters.
  private static func plain(_ given: String) -> [UInt8] {
    given.uppercased().utf8.prefix(64).compactMap { byte in
      switch byte {
      case UInt8(ascii: "O"): UInt8(ascii: "0")
      case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
      case UInt8(ascii: "-"), UInt8(ascii: " "): nil
      default: byte
      }
    }
  }

  /// The code as it is shown: `K7QD-3MPX`.
  static func shown(_ code: String) -> String { "\(code.prefix(4))-\(code.dropFirst(4))" }
}
