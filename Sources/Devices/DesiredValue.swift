import Configuration
import GATT
import JSON
import Log

/// The desired value of a device's property, and its source.
struct DesiredValue: Sendable, Equatable {
  /// A value set by a command or a request. It ranks above the configured one, and survives restarts.
  struct Override: Sendable, Equatable {
    let value: Value
    let source: ValueSource
  }

  /// The value of a command that waits, and who gets its outcome if that is in a later run.
  struct Waiting: Sendable, Equatable {
    let value: Value
    let sender: JSONValue?
  }

  var configured: Value?
  var override: Override?
  /// The value of a command without time to live that is not carried out yet: kept over a restart, as the override is.
  var waiting: Waiting?

  /// The value that is applied on every link; nil leaves the device as it is.
  var effective: Value? { override?.value ?? configured }
  /// The value that is published.
  var shown: Value? { waiting?.value ?? effective }
  /// Whether ``shown`` is the configured value.
  var isConfigured: Bool { waiting == nil && override == nil && configured != nil }
}

/// What gateways hand over to each other by the `info` of a device: its owner publishes it, the others copy what is newer.
package struct Handover: Sendable, Equatable {
  /// The desired values by property; one that is not named is not known to the gateway that hands over.
  package let desired: [String: PublishedDesired]
  /// See ``DeviceDescription/isDeleted``.
  package let isDeleted: Bool
  /// See ``DeviceDescription/revision``.
  package let revision: Int
  /// The values that the device's program names itself, by their names in topics.
  let values: [ValueKey: ValueTable.Entry]
  /// See ``DeviceDescription/told``.
  let told: [HeardEvents.Event]

  package init(
    desired: [String: PublishedDesired] = [:], isDeleted: Bool = false, revision: Int = 0,
    values: [(key: ValueKey, written: String, isNumber: Bool)] = [], told: [HeardEvents.Event] = []
  ) {
    self.told = told
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

extension DeviceSettings {
  /// The command for the property that was waiting when the last run ended; nil also if its value does not fit the
  /// property (any more).
  func waiting(_ name: String, _ record: DeviceRecord?) -> DesiredValue.Waiting? {
    guard let stored = record?.waiting[name], let property = profile.property(named: name),
      let encoded = try? property.value(of: stored.value)
    else { return nil }
    return DesiredValue.Waiting(value: encoded.value, sender: stored.sender)
  }
}
