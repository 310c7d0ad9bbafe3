import Configuration
import GATT
import Log

/// A value that a device sent, or that was read from it.
package struct Reading: Sendable {
  /// The property's index in the device's profile.
  package let property: Int
  /// The named value that this is; nil: the property's own value.
  package var key: ValueKey?
  package let value: Value
  package let time: Timestamp
  /// The number of the reading among all of the device in this run; nil for what is not counted as a reading: the value of a
  /// writable property that was read after a write or on a new link, or a last value that is reported again.
  package let sequence: UInt64?
  /// Whether the value is a message that is nothing but values of the program, which have readings of their own.
  package var isOnlyValues = false
  /// The sender's ms since its start, of what came by radio; nil: it is not known.
  package var senderTime: UInt32?
}

/// The last value in this run of a property, or of one that the device's program names itself.
package struct LastValue: Sendable {
  /// The last value as the device has it, without an offset; nil: none yet.
  package private(set) var value: Value?
  package private(set) var time: Timestamp?
  /// How many readings there were.
  package private(set) var count: UInt64 = 0
  /// Whether none has come in this run, or round.
  var isAwaited = true

  package init() {}

  mutating func reported(_ value: Value, at time: Timestamp) {
    readBack(value, at: time)
    count += 1
  }

  /// A value was read back: it is not a reading.
  mutating func readBack(_ value: Value, at time: Timestamp) {
    (self.value, self.time, isAwaited) = (value, time, false)
  }

  /// A message that is nothing but values of the program: it is counted, but does not become the last value.
  mutating func reportedValues() {
    count += 1
    isAwaited = false
  }

  /// The value as it is published, with what is added to a number.
  package func published(_ property: Property) -> Value? {
    value?.adding(property.offset)
  }
}
