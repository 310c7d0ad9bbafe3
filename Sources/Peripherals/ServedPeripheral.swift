import EventLoop
import GATT

/// A peripheral that a program serves: its values by the names of a profile's properties, and its subscribers.
package struct ServedPeripheral: Sendable {
  /// The profile, whose properties name the values.
  package let profile: Profile
  package var values: PeripheralValues
  /// The handles of the characteristics with subscribers.
  private var subscribed: [UInt16] = []

  /// A micro:bit with all its services, or a peripheral with the characteristics of `profile`.
  package init(_ profile: Profile, generators: [Generator] = [], at now: Moment) {
    self.profile = profile
    if profile.name == Profile.microbit.name {
      var random = SplitMix(seed: 1)
      values = PeripheralValues(
        .microBit(serial: 1_234_567_890, MicroBitService.allCases),
        microBit: MicroBit(index: 0, period: 1000, at: now, random: &random),
        accelerometer: Accelerometer(at: now), generators: generators, at: now)
    } else {
      values = PeripheralValues(
        PeripheralDescription(name: profile.name, profile: profile).database, generators: generators, at: now)
    }
  }

  /// The property of a characteristic, if the profile has one.
  package func property(of handle: UInt16) -> Property? {
    profile.properties.last { values.database.characteristic(of: $0)?.handle == handle }
  }

  /// The first central subscribes to a characteristic, or the last one ends its subscription.
  package mutating func subscribe(_ handle: UInt16, _ isOn: Bool, at now: Moment) {
    subscribed.removeAll { $0 == handle }
    if isOn { subscribed.append(handle) }
    values.subscriptionChanged(handle, at: now)
  }

  /// bluetoothd has ended: nobody is subscribed.
  package mutating func unsubscribeAll() { subscribed = [] }

  /// Sets a value: a sensor's is notified with its next sample, others at once.
  package mutating func set(
    _ property: Property, to value: Value, at now: Moment
  ) throws(PeripheralError) -> [PeripheralValues.Notification] {
    let packets = try property.packets(of: value)
    guard let characteristic = values.database.characteristic(of: property) else { return [] }
    var notifications: [PeripheralValues.Notification] = []
    for bytes in packets {
      guard let sent = values.set(characteristic, to: bytes, at: now) else {
        throw PeripheralError("\(property.name): the value is not possible")
      }
      notifications += sent
    }
    return notifications.filter { subscribed.contains($0.handle) }
  }

  /// When ``advance(to:)`` is to be called next.
  package var next: Moment? { values.next(for: subscribed) }

  /// Takes the samples and generates the values that are due.
  package mutating func advance(to now: Moment) -> [PeripheralValues.Notification] {
    values.advance(to: now, for: subscribed)
  }
}

extension GATTDatabase {
  /// The characteristic of a property.
  package func characteristic(of property: Property) -> Characteristic? {
    characteristic(property.characteristic, instance: property.instance, in: property.service)
  }
}
