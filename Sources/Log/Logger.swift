import Synchronization

/// What follows the message of a line, as `key=value`. Keys are the program's own; values may come from
/// anywhere and are escaped.
public typealias LogFields = KeyValuePairs<String, any CustomStringConvertible>

/// Writes lines to stderr: `level component: message key=value …`.
///
/// Neither the message nor the fields are computed when the level is off.
public struct Logger: Sendable {
  private let component: StaticString

  /// - Parameter component: the part of the program that speaks, as it stands in every line of it.
  public init(component: StaticString) {
    self.component = component
  }

  private static let threshold = Atomic<Int>(LogLevel.info.rawValue)

  /// The least severe level that is written, for the whole process; `info` at the start.
  public static var level: LogLevel {
    get { LogLevel(rawValue: threshold.load(ordering: .relaxed)) ?? .info }
    set { threshold.store(newValue.rawValue, ordering: .relaxed) }
  }

  /// Whether lines of `level` are written: for what is made for the log alone.
  public static func isEnabled(_ level: LogLevel) -> Bool {
    level.rawValue >= threshold.load(ordering: .relaxed)
  }

  /// At ``LogLevel/debug``: not written unless asked for.
  public func debug(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.debug) { write(.debug, message(), fields()) }
  }

  /// At ``LogLevel/info``: the least that is written unless ``level`` is changed.
  public func info(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.info) { write(.info, message(), fields()) }
  }

  /// At ``LogLevel/notice``: what a user understands who does not know the program.
  public func notice(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.notice) { write(.notice, message(), fields()) }
  }

  /// At ``LogLevel/warning``: a trouble that the program lives with.
  public func warning(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.warning) { write(.warning, message(), fields()) }
  }

  /// At ``LogLevel/error``: what was asked for and is not done.
  public func error(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.error) { write(.error, message(), fields()) }
  }

  /// Writes a line of a level that is known only at run time.
  public func write(_ level: LogLevel, _ message: String, _ fields: LogFields = [:]) {
    guard Self.isEnabled(level) else { return }
    StandardError.write(LogLine(level: level, component: component.description, message: message, fields))
  }
}
