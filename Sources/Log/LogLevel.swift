/// How much a line matters; the order is the order of severity.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
  /// Every step, for whoever looks for a fault.
  case debug
  /// What the gateway does.
  case info
  /// What a user wants to know without having asked: a micro:bit came or went.
  case notice
  /// Something is not as it should be, and the gateway goes on.
  case warning
  /// Something the gateway was asked to do is not done.
  case error

  /// Reads `debug`, `info`, `notice`, `warning` or `error`; nil for anything else.
  public init?(name: some StringProtocol) {
    guard let level = LogLevel.allCases.first(where: { $0.name == name }) else { return nil }
    self = level
  }

  /// The name as it is shown, and as `--log-level` takes it.
  public var name: String {
    switch self {
    case .debug: "debug"
    case .info: "info"
    case .notice: "notice"
    case .warning: "warning"
    case .error: "error"
    }
  }

  /// The number of syslog(3), as sd-daemon(3) wants it in front of a line.
  var journalPriority: Int {
    switch self {
    case .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    }
  }

  /// Whether `a` matters less than `b`.
  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}
