/// How much a line matters; the order is the order of severity.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
  case debug, info, notice, warning, error

  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}
