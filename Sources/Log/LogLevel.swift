/// The severity of a line, in ascending order.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
  /// Every step, for debugging.
  case debug
  /// Normal operation.
  case info
  /// What interests the user: a micro:bit has come or gone.
  case notice
  /// A problem that the gateway works around.
  case warning
  /// A requested operation has failed.
  case error

  /// Reads `debug`, `info`, `notice`, `warning` or `error`; nil for anything else.
  public init?(name: some StringProtocol) {
    guard let level = LogLevel.allCases.first(where: { $0.name == name }) else { return nil }
    self = level
  }

  /// The name as shown, and as in `--log-level`.
  public var name: String { "\(self)" }

  /// The priority of syslog(3), for the prefix of sd-daemon(3).
  var journalPriority: Int { 7 - rawValue }

  /// The sequence that colours what follows on a terminal.
  var colour: String {
    switch self {
    case .debug: LogLevel.faint
    case .info: "\u{1B}[36m"
    case .notice: "\u{1B}[32m"
    case .warning: "\u{1B}[33m"
    case .error: "\u{1B}[1;31m"
    }
  }

  static let faint = "\u{1B}[2m"
  /// The sequence that ends a colour.
  static let noColour = "\u{1B}[0m"

  /// Whether `a` is less severe than `b`.
  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}
