import EventLoop
import GATT

/// A peripheral that a program serves: its values by the names of a profile's properties, its subscribers and
/// generators.
///
/// A pure state machine: time is an argument, and what is to be notified is returned.
package struct ServedPeripheral: Sendable {
  /// Bytes to be sent to the subscribers of a characteristic.
  package struct Notification: Sendable, Equatable {
    package let handle: UInt16
    package let bytes: [UInt8]
  }

  /// The profile, whose properties name the values.
  package let profile: Profile
  /// The properties by the handles of their characteristics.
  private let properties: [UInt16: Property]
  private var values: PeripheralValues
  private var generators: [(generator: Generator, next: Moment)]
  private var subscribed: Set<UInt16> = []

  /// A micro:bit with all its services, or a peripheral with the characteristics of `profile`.
  package init(_ profile: Profile, generators: [Generator] = [], at now: Moment) {
    self.profile = profile
    if profile.name == Profile.microbit.name {
      var random = SplitMix(seed: 1)
      values = PeripheralValues(
        .microBit(serial: 1_234_567_890, MicroBitService.allCases),
        microBit: MicroBit(index: 0, period: 1000, at: now, random: &random),
        accelerometer: Accelerometer(at: now))
    } else {
      values = PeripheralValues(PeripheralDescription(name: profile.name, profile: profile).database)
    }
    self.generators = generators.map { ($0, now) }
    var properties: [UInt16: Property] = [:]
    for property in profile.properties {
      if let characteristic = values.database.characteristic(of: property) {
        properties[characteristic.handle] = property
      }
    }
    self.properties = properties
  }

  /// The services and characteristics.
  package var database: GATTDatabase { values.database }

  /// The property of a characteristic, if the profile has one.
  package func property(of handle: UInt16) -> Property? { properties[handle] }

  /// The value of a characteristic.
  package func value(of characteristic: GATTDatabase.Characteristic, at now: Moment)
    -> [UInt8]
  {
    values.value(of: characteristic, at: now)
  }

  /// A central writes.
  /// - Returns: whether the length was valid; otherwise nothing changes.
  package mutating func write(
    _ bytes: [UInt8], to characteristic: GATTDatabase.Characteristic, at now: Moment
  ) -> Bool {
    guard values.write(bytes, to: characteristic, at: now) else { return false }
    for index in generators.indices { generators[index].generator.received(bytes, by: characteristic.uuid) }
    return true
  }

  /// The first central subscribes to a characteristic, or the last one ends its subscription.
  package mutating func subscribe(_ handle: UInt16, _ isOn: Bool, at now: Moment) {
    if isOn { subscribed.insert(handle) } else { subscribed.remove(handle) }
    if let sensor = database.sensor(of: handle) { values.skip(sensor, to: now) }
  }

  /// bluetoothd has ended: nobody is subscribed.
  package mutating func unsubscribeAll() { subscribed = [] }

  /// Whether a characteristic has subscribers.
  package func isSubscribed(_ handle: UInt16) -> Bool { subscribed.contains(handle) }

  /// Sets a value: a sensor's is notified with its next sample, others at once.
  package mutating func set(
    _ property: Property, to value: Value, at now: Moment
  ) throws(PeripheralError) -> [Notification] {
    try set(property, to: try property.packets(of: value), at: now)
  }

  private mutating func set(
    _ property: Property, to packets: [[UInt8]], at now: Moment
  ) throws(PeripheralError) -> [Notification] {
    guard let characteristic = database.characteristic(of: property) else { return [] }
    var notifications: [Notification] = []
    for bytes in packets {
      guard values.set(characteristic, to: bytes, at: now) else {
        throw PeripheralError("\(property.name): the value is not possible")
      }
      notifications += values.notifications(of: characteristic, set: bytes)
        .filter { isSubscribed($0.handle) }.map { Notification(handle: $0.handle, bytes: $0.bytes) }
    }
    return notifications
  }

  // MARK: Time

  /// When ``advance(to:)`` is to be called next.
  package var next: Moment? {
    let samples = subscribedSensors.compactMap { values.nextSample(of: $0.sensor) }
    return (samples + generators.map(\.next)).min()
  }

  /// Takes the samples and generates the values that are due.
  package mutating func advance(to now: Moment) -> [Notification] {
    var notifications: [Notification] = []
    for index in generators.indices where generators[index].next <= now {
      let (packets, wait) = generators[index].generator.next()
      // The generator continues from now after a delay of more than an interval, instead of catching up.
      let next = generators[index].next + wait
      generators[index].next = next > now ? next : now + wait
      notifications += (try? set(generators[index].generator.property, to: packets, at: now)) ?? []
    }
    for (sensor, handle) in subscribedSensors {
      guard let next = values.nextSample(of: sensor), next <= now,
        let bytes = values.sample(sensor, at: now)
      else { continue }
      notifications.append(Notification(handle: handle, bytes: bytes))
    }
    return notifications
  }

  private var subscribedSensors: [(sensor: Sensor, handle: UInt16)] {
    Sensor.allCases.compactMap { sensor in
      database.handle(of: sensor).flatMap { isSubscribed($0) ? (sensor, $0) : nil }
    }
  }
}

extension GATTDatabase {
  /// The characteristic of a property.
  package func characteristic(of property: Property) -> Characteristic? {
    characteristic(property.characteristic, instance: property.instance, in: property.service)
  }
}
