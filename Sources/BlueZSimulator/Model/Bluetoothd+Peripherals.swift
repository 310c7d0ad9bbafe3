import EventLoop
import Peripherals

/// Control commands for peripherals and adapters.
extension Bluetoothd {
  /// The peripheral as the adapter knows it that has a link with it; without a link, as the first one does.
  func key(ofPeripheral index: Int) -> DeviceKey {
    DeviceKey(adapter: peripherals[index].radio.linked ?? 0, peripheral: index)
  }

  /// A peripheral advertises again, or the link of one has ended.
  private mutating func startConnects(at now: Moment) {
    for number in adapters.indices { startConnects(of: number, at: now) }
  }

  /// Goes out of range: a link ends by supervision time-out.
  mutating func vanish(_ index: Int, at now: Moment) -> [Effect] {
    peripherals[index].radio.vanish(at: now)
    if peripherals[index].radio.linked != nil {
      expect(.supervisionEnds, of: key(ofPeripheral: index), at: now + timing.supervision)
    }
    return takeEffects()
  }

  /// Comes back into range.
  mutating func comeBack(_ index: Int, at now: Moment) -> [Effect] {
    peripherals[index].radio.comeBack()
    expectAdvertisement(of: index, at: now)
    startConnects(at: now)
    return takeEffects()
  }

  /// The peripheral ends its link.
  mutating func hangUp(_ index: Int, at now: Moment) -> [Effect] {
    lose(key(ofPeripheral: index), at: now)
    startConnects(at: now)
    return takeEffects()
  }

  /// The reset button: the link ends, RAM is cleared, and it advertises again after 0.3 s.
  mutating func reset(_ index: Int, at now: Moment) -> [Effect] {
    let start = now + .milliseconds(300)
    lose(key(ofPeripheral: index), at: now)
    peripherals[index].values.reset(at: start)
    if peripherals[index].radio.advertises {
      peripherals[index].radio.advertises = false
      schedule.add(.started(peripheral: index), at: start)
    }
    startConnects(at: now)
    return takeEffects()
  }

  /// Sets the period, as another program would.
  mutating func setPeriod(_ index: Int, _ period: UInt16, at now: Moment) {
    let bytes = [UInt8(truncatingIfNeeded: period), UInt8(period >> 8)]
    _ = peripherals[index].values.microBit?.writePeriod(bytes, at: now)
  }

  /// Sets a value and notifies subscribers: with a sensor's next sample, else at once.
  /// - Returns: nil if the value is not possible.
  mutating func setValue(
    _ index: Int, _ characteristic: GATTDatabase.Characteristic, _ bytes: [UInt8],
    at now: Moment
  ) -> [Effect]? { put(bytes, index, characteristic, at: now) ? takeEffects() : nil }

  private mutating func put(
    _ bytes: [UInt8], _ index: Int, _ characteristic: GATTDatabase.Characteristic,
    at now: Moment
  ) -> Bool {
    guard peripherals[index].values.set(characteristic, to: bytes, at: now) else { return false }
    let (values, key) = (peripherals[index].values, key(ofPeripheral: index))
    if let sensor = values.sensor(changedBy: characteristic) { reschedule(key, sensor) }
    for (handle, bytes) in values.notifications(of: characteristic, set: bytes) { notify(key, handle, bytes) }
    return true
  }

  /// Sets the next value of a generator.
  mutating func generate(_ index: Int, _ generator: Int, _ deadline: Moment, at now: Moment) {
    let property = peripherals[index].generators[generator].property
    let (packets, wait) = peripherals[index].generators[generator].next()
    if let characteristic = peripherals[index].database.characteristic(of: property) {
      for bytes in packets { _ = put(bytes, index, characteristic, at: now) }
    }
    // The generator continues from now after a delay of more than an interval, instead of catching up.
    let next = deadline + wait
    schedule.add(.generates(peripheral: index, generator: generator), at: next > now ? next : now + wait)
  }

  mutating func start(_ index: Int, at now: Moment) {
    peripherals[index].radio.advertises = true
    expectAdvertisement(of: index, at: now)
    startConnects(at: now)
  }

  /// How well an adapter receives the peripheral; nil: it is out of its range.
  mutating func setStrength(_ index: Int, _ strength: Int?, of adapter: Int, at now: Moment) -> [Effect] {
    peripherals[index].radio.setStrength(strength, at: adapter)
    expectAdvertisement(of: index, at: now)
    startConnects(at: now)
    return takeEffects()
  }

  /// Powers an adapter, as another program would by rfkill or a Set of Powered.
  mutating func power(_ adapter: Int, _ on: Bool, at now: Moment) -> [Effect] {
    setPowered(adapter, on, for: nil, at: now)
    return takeEffects()
  }

  /// Removes or adds an adapter.
  mutating func plug(_ adapter: Int, _ present: Bool, at now: Moment) -> [Effect] {
    if present { replug(adapter, at: now) } else { unplug(adapter, at: now) }
    return takeEffects()
  }
}
