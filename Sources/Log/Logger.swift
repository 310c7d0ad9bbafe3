import Synchronization

/// The fields of a line, written as `key=value`. Values may come from anywhere and are escaped.
public typealias LogFields = KeyValuePairs<String, any CustomStringConvertible>

/// Writes lines to stderr: `level component: message key=value …`; if stderr is the journal, an entry with the fields
/// `PRIORITY`, `DEVICE` and `ADDRESS`.
///
/// Message and fields are only computed if the level is enabled.
public struct Logger: Sendable {
  private let component: StaticString

  /// - Parameter component: the part of the program, named in every line.
  public init(component: StaticString) {
    self.component = component
  }

  private static let threshold = Atomic<Int>(LogLevel.info.rawValue)
  private static let sink = Mutex(LineSink.standardError())

  /// The least severe level that is written by the process; initially `info`.
  public static var level: LogLevel {
    get { LogLevel(rawValue: threshold.load(ordering: .relaxed)) ?? .info }
    set { threshold.store(newValue.rawValue, ordering: .relaxed) }
  }

  /// The format of the process's lines; initially ``LogFormat/text``.
  public static var format: LogFormat {
    get { sink.withLock { $0.format } }
    set { sink.withLock { $0.format = newValue } }
  }

  /// Whether lines of `level` are written.
  public static func isEnabled(_ level: LogLevel) -> Bool {
    level.rawValue >= threshold.load(ordering: .relaxed)
  }

  /// Logs at ``LogLevel/debug``.
  public func debug(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.debug) { write(.debug, message(), fields()) }
  }

  /// Logs at ``LogLevel/info``.
  public func info(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.info) { write(.info, message(), fields()) }
  }

  /// Logs at ``LogLevel/notice``.
  public func notice(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.notice) { write(.notice, message(), fields()) }
  }

  /// Logs at ``LogLevel/warning``.
  public func warning(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.warning) { write(.warning, message(), fields()) }
  }

  /// Logs at ``LogLevel/error``.
  public func error(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
    if Self.isEnabled(.error) { write(.error, message(), fields()) }
  }

  /// Writes a line of a level known only at run time.
  public func write(_ level: LogLevel, _ message: String, _ fields: LogFields = [:]) {
    guard Self.isEnabled(level) else { return }
    let line = LogLine(level: level, component: component.description, message: message, fields: fields)
    Self.sink.withLock { $0.write(line) }
  }
}
