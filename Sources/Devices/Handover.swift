import Configuration
import EventLoop
import GATT
import Log

/// What gateways hand over to each other by the `info` of a device: its owner publishes it, the others copy what is newer.
package struct Handover: Sendable, Equatable {
  /// What commands and requests have set by property; nil: nothing, and what is configured there does not hold here. A
  /// property that is not named is not known to the gateway that hands over.
  package let desired: [String: EncodedValue?]
  /// See ``DeviceRecord/Requested/isDeleted``.
  package let isDeleted: Bool
  /// Whether a request has disabled the device.
  package let isDisabled: Bool
  /// See ``DeviceRecord/revision``.
  package let revision: Int
  /// The values that the device's program names itself, by their names in topics.
  let valueTable: [ValueKey: ValueTable.Entry]
  /// See ``DeviceRecord/told``.
  let told: [HeardEvents.Event]
  /// How far the data log was published; nil: the other gateway does not publish it.
  let log: LogPosition?

  package init(
    desired: [String: EncodedValue?] = [:], isDeleted: Bool = false, isDisabled: Bool = false,
    revision: Int = 0,
    valueTable: [ValueKey: ValueTable.Entry] = [:], told: [HeardEvents.Event] = [], log: LogPosition? = nil
  ) {
    self.desired = desired
    self.isDeleted = isDeleted
    self.isDisabled = isDisabled
    self.revision = revision
    self.valueTable = valueTable
    self.told = told
    self.log = log
  }

  /// When something was set last, by the clock of the gateway where it was.
  var lastChange: Moment { .now + .milliseconds(Int64(revision) - Timestamp.now.milliseconds) }

  /// Whether the handover replaces what this gateway has. Of two that are as new, that of an owner that is online counts.
  func isNewer(than revision: Int, isTakenOver: Bool) -> Bool {
    self.revision > revision || isTakenOver && self.revision == revision
  }
}
