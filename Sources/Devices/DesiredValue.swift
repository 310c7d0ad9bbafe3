import Configuration
import GATT
import JSON
import Log

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
  /// The override is that of another gateway, or of an earlier run. Commands go on.
  case copied(PublishedDesired)
}

/// What gateways hand over to each other by the `info` of a device: its owner publishes it, the others copy what is newer.
package struct Handover: Sendable, Equatable {
  /// The desired values by property; one that is not named is not known to the gateway that hands over.
  package let desired: [String: PublishedDesired]
  /// See ``DeviceRecord/isDeleted``.
  package let isDeleted: Bool
  /// See ``DeviceRecord/revision``.
  package let revision: Int
  /// The values that the device's program names itself, by their names in topics.
  let values: [ValueKey: ValueTable.Entry]
  /// See ``DeviceRecord/told``.
  let told: [HeardEvents.Event]
  /// How far the data log was published; nil: the other gateway does not publish it.
  let log: LogPosition?

  package init(
    desired: [String: PublishedDesired] = [:], isDeleted: Bool = false, revision: Int = 0,
    values: [(key: ValueKey, written: String, isNumber: Bool)] = [], told: [HeardEvents.Event] = [],
    log: LogPosition? = nil
  ) {
    (self.told, self.log) = (told, log)
    let today = Timestamp.now.day
    self.values = Dictionary(
      values.map { value in
        let entry = ValueTable.Entry(
          written: value.written, isNumber: value.isNumber, isConfirmed: true, lastSeen: today)
        return (value.key, entry)
      }
    ) { first, _ in first }
    self.desired = desired
    self.isDeleted = isDeleted
    self.revision = revision
  }

  /// Whether the handover replaces what this gateway has. Of two that are as new, that of an owner that is online counts.
  func isNewer(than revision: Int, isTakenOver: Bool) -> Bool {
    self.revision > revision || isTakenOver && self.revision == revision
  }
}

/// What another gateway, which owns the device, has published of a property's desired value.
package enum PublishedDesired: Sendable, Equatable {
  /// A command or a request has set this value at the other gateway.
  case override(EncodedValue)
  /// No command or request has set a value at the other gateway. What is configured there does not hold here.
  case noOverride

  var override: EncodedValue? {
    switch self {
    case .override(let value): value
    case .noOverride: nil
    }
  }
}
