/// What befalls the peripherals, from outside.
extension Bluetoothd {
  /// Goes out of range: the link, if there is one, ends by supervision time-out.
  mutating func vanish(_ index: Int, at now: ContinuousClock.Instant) -> [Effect] {
    if peripherals[index].inRange { peripherals[index].goneSince = now }
    if peripherals[index].linked, let device = devices[index] {
      schedule.add(.linkLost(peripheral: index, attempt: device.attempt), at: now + timing.supervision)
    }
    return takeEffects()
  }

  /// Comes back into range.
  mutating func comeBack(_ index: Int, at now: ContinuousClock.Instant) -> [Effect] {
    peripherals[index].goneSince = nil
    listen(for: index, at: now)
    pursueConnects(at: now)
    return takeEffects()
  }

  /// Ends its link.
  mutating func hangUp(_ index: Int, at now: ContinuousClock.Instant) -> [Effect] {
    lose(index, at: now)
    pursueConnects(at: now)
    return takeEffects()
  }

  /// The reset button: the link ends, RAM is lost, and in 0.3 s it advertises again.
  mutating func reset(_ index: Int, at now: ContinuousClock.Instant) -> [Effect] {
    let start = now + .milliseconds(300)
    lose(index, at: now)
    peripherals[index].reset(at: start)
    if peripherals[index].advertises {
      peripherals[index].advertises = false
      schedule.add(.started(peripheral: index), at: start)
    }
    pursueConnects(at: now)
    return takeEffects()
  }

  /// Another program has written a period.
  mutating func setPeriod(_ index: Int, _ period: UInt16, at now: ContinuousClock.Instant) {
    let bytes = [UInt8(truncatingIfNeeded: period), UInt8(period >> 8)]
    _ = peripherals[index].microBit?.writePeriod(bytes, at: now)
  }

  /// Makes a characteristic hold other bytes, and notifies those who have subscribed: with a sensor's next sample, else
  /// at once.
  /// - Returns: nil when it cannot hold them.
  mutating func setValue(
    _ index: Int, _ characteristic: GATTDatabase.Characteristic, _ bytes: [UInt8],
    at now: ContinuousClock.Instant
  ) -> [Effect]? {
    guard peripherals[index].set(characteristic, to: bytes, at: now) else { return nil }
    if characteristic.content == .accelerationPeriod { replan(index, .acceleration) }
    if peripherals[index].database.sensor(of: characteristic.handle) == nil {
      notify(index, characteristic.handle, bytes)
    }
    return takeEffects()
  }

  mutating func start(_ index: Int, at now: ContinuousClock.Instant) {
    peripherals[index].advertises = true
    listen(for: index, at: now)
    pursueConnects(at: now)
  }

  mutating func setAdvertising(_ index: Int, _ on: Bool, at now: ContinuousClock.Instant) -> [Effect] {
    peripherals[index].advertises = on
    listen(for: index, at: now)
    pursueConnects(at: now)
    return takeEffects()
  }

  /// From outside, as another program would by rfkill or a Set of Powered.
  mutating func power(_ on: Bool, at now: ContinuousClock.Instant) -> [Effect] {
    setPowered(on, for: nil, at: now)
    return takeEffects()
  }

  /// Pulls the adapter, or plugs it in.
  mutating func plug(_ present: Bool, at now: ContinuousClock.Instant) -> [Effect] {
    if present { replug(at: now) } else { unplug(at: now) }
    return takeEffects()
  }
}
