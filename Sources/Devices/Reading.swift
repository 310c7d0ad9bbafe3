import Configuration
import GATT

/// A value that a device sent, or that was read from it.
package struct Reading: Sendable {
  /// The property's index in the device's profile.
  package let property: Int
  package let value: Value
  package let time: Timestamp
  /// Counts the device's readings of this run, whatever their property; nil for what the engine read for itself, after
  /// a write or on a new link: only the property's value, not a reading.
  package let sequence: UInt64?
}

/// A value for a property, from whatever front end.
package struct Command: Sendable {
  package let device: DeviceID
  /// The property's index in the device's profile.
  package let property: Int
  /// In the property's range.
  package let value: Value
  /// Nil: it waits for the device as long as it takes; an event is not kept for an absent device then.
  package let timeToLive: TimeToLive?
  /// Gets at most one ``Outcome/pending``, and exactly one final outcome; called on the loop. Only where another gateway
  /// takes the device over, a command that waits is left to that one.
  package let reply: @Sendable (Outcome) -> Void

  package init(
    device: DeviceID, property: Int, value: Value, timeToLive: TimeToLive? = nil,
    reply: @escaping @Sendable (Outcome) -> Void
  ) {
    self.device = device
    self.property = property
    self.value = value
    self.timeToLive = timeToLive
    self.reply = reply
  }
}
