import GATT

/// The desired value of a device's property, and its source.
struct DesiredValue: Sendable, Equatable {
  /// A value set by a command or a request. It ranks above the configured one, and survives restarts.
  struct Override: Sendable, Equatable {
    let value: Value
    let source: ValueSource
  }

  var configured: Value?
  var override: Override?
  /// Of a command without time to live that is not carried out yet: kept for the next start.
  var waiting: Value?

  /// What is applied on every link; nil leaves the device as it is.
  var effective: Value? { override?.value ?? configured }
  /// What is kept over a restart.
  var persistent: Override? { waiting.map { Override(value: $0, source: .command) } ?? override }
  /// What is published.
  var shown: Value? { waiting ?? effective }
}
