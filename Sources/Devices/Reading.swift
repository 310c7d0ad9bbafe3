import GATT
import Log

/// A value that a device sent, or that was read from it.
package struct Reading: Sendable {
  /// The property's index in the device's profile.
  package let property: Int
  package let value: Value
  package let time: Timestamp
  /// Counts the device's readings of this run, whatever their property; nil for a value read back, after a write or on a
  /// new link: only the property's value, not a reading.
  package let sequence: UInt64?
  /// Whether the value is a message that is nothing but values of the program, which have readings of their own.
  package var isValues = false
}
