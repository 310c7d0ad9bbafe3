import GATT

/// The desired value of a device's property, and its source.
struct DesiredValue: Sendable, Equatable {
  /// A value set by a command or a request. It ranks above the configured one, and survives restarts.
  struct Override: Sendable, Equatable {
    let value: Value
    let source: ValueSource
    /// Whether it was set while there was no link, and none has begun since.
    var isUnapplied = false
  }

  var configured: Value?
  var override: Override?
  /// Of a command without time to live that is not carried out yet: kept for the next start.
  var waiting: Value?

  /// What is applied on every link; nil leaves the device as it is.
  var effective: Value? { override?.value ?? configured }
  /// What is kept over a restart.
  var persistent: Override? {
    waiting.map { Override(value: $0, source: .command, isUnapplied: true) } ?? override
  }
  /// What is published.
  var shown: Value? { waiting ?? effective }
  /// Whether ``shown`` is the configured value.
  var isConfigured: Bool { waiting == nil && override == nil && configured != nil }
}

/// What another gateway, which owns the device, has published of a property's desired value.
package enum PublishedDesired: Sendable, Equatable {
  /// It was set there by a command or a request.
  case override(EncodedValue)
  /// No command or request has set it there. What is configured there does not hold here.
  case noOverride

  var override: EncodedValue? {
    switch self {
    case .override(let value): value
    case .noOverride: nil
    }
  }
}
