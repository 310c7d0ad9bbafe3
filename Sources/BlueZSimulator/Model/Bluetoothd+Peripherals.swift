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
  mutating func vanish(_ index: Int, at now: Moment) {
    if peripherals[index].radio.inRange { peripherals[index].radio.goneSince = now }
    if peripherals[index].radio.linked != nil {
      expect(.supervisionEnds, of: key(ofPeripheral: index), after: timing.supervision, at: now)
    }
  }

  /// Comes back into range.
  mutating func comeBack(_ index: Int, at now: Moment) {
    peripherals[index].radio.goneSince = nil
    expectAdvertisement(of: index, at: now)
    startConnects(at: now)
  }

  /// The reset button: the link ends, RAM is cleared, and it advertises again after 0.3 s.
  mutating func reset(_ index: Int, at now: Moment) {
    let start = now + .milliseconds(300)
    lose(key(ofPeripheral: index), at: now)
    peripherals[index].values.reset(at: start)
    if peripherals[index].radio.advertises {
      peripherals[index].radio.advertises = false
      schedule.add(.started(peripheral: index), at: start)
    }
    startConnects(at: now)
  }

  /// Sets a value and notifies subscribers: with a sensor's next sample, else at once.
  /// - Returns: whether the value is possible.
  mutating func setValue(
    _ index: Int, _ characteristic: GATTDatabase.Characteristic, _ bytes: [UInt8], at now: Moment
  ) -> Bool {
    guard let notifications = peripherals[index].values.set(characteristic, to: bytes, at: now) else {
      return false
    }
    for notification in notifications { notify(key(ofPeripheral: index), notification) }
    expectValues(of: index)
    return true
  }

  mutating func start(_ index: Int, at now: Moment) {
    peripherals[index].radio.advertises = true
    expectAdvertisement(of: index, at: now)
    startConnects(at: now)
  }

  /// How well an adapter receives the peripheral; nil: it is out of its range.
  mutating func setStrength(_ index: Int, _ strength: Int?, of adapter: Int, at now: Moment) {
    peripherals[index].radio.strengths[adapter] = strength
    expectAdvertisement(of: index, at: now)
    startConnects(at: now)
  }
}
