import GATT
import JSON

/// The desired value of a device's property, and its source. Its owner is ``StateWrites``; what is kept of it over a restart is
/// in the ``DeviceRecord``.
package struct DesiredValue: Sendable, Equatable {
  /// A value set by a command or a request. It ranks above the configured one, and survives restarts.
  struct Override: Sendable, Equatable {
    let value: EncodedValue
    let source: ValueSource
  }

  /// The value of a command that waits, and who gets its outcome if that is in a later run.
  struct Waiting: Sendable, Equatable {
    let value: EncodedValue
    let sender: JSONValue?
  }

  var configured: EncodedValue?
  var override: Override?
  /// The value of a command without time to live that is not carried out yet: kept over a restart, as the override is.
  var waiting: Waiting?
  package var waitingValue: Value? { waiting?.value.value }

  /// The value that is applied on every link; nil leaves the device as it is.
  var effective: EncodedValue? { override?.value ?? configured }
  /// What a command or a request has set last, be it carried out or waiting: other gateways copy it.
  var newest: Override? { waiting.map { Override(value: $0.value, source: .command) } ?? override }
  /// The value that is published.
  package var shown: Value? { (newest?.value ?? configured)?.value }
  /// Whether ``shown`` is the configured value.
  package var isConfigured: Bool { newest == nil && configured != nil }
}

/// A change of a desired value that no command makes.
enum DesiredChange: Sendable {
  /// The configuration has this value, or none. Commands go on.
  case configured(EncodedValue?)
  /// A request sets the override; nil: the configured value counts again. Of commands and requests the latest wins: a command
  /// that waits is superseded, and one in flight is answered and then undone.
  case requested(EncodedValue?)
  /// The override is that of another gateway, or of an earlier run; nil: none. Commands go on.
  case copied(EncodedValue?)
}
