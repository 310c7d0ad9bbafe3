import EventLoop
import Peripherals

/// Control commands for peripherals and adapters.
extension Bluetoothd {
  /// The peripheral as the adapter knows it that has a link with it; without a link, as the first one does.
  func key(ofPeripheral index: Int) -> DeviceKey {
    DeviceKey(adapter: peripherals[index].radio.linked ?? 0, peripheral: index)
  }

  /// A peripheral advertises again, or the link of one has ended.
  private mutating func startConnects() {
    for number in adapters.indices { startConnects(of: number) }
  }

  /// Goes out of range: a link ends by supervision time-out.
  mutating func vanish(_ index: Int) {
    if peripherals[index].radio.inRange { peripherals[index].radio.goneSince = now }
    if peripherals[index].radio.linked != nil {
      let key = key(ofPeripheral: index)
      planForLink(of: key, after: timing.supervision) { $0.superviseLink(key) }
    }
  }

  /// Comes back into range.
  mutating func comeBack(_ index: Int) {
    peripherals[index].radio.goneSince = nil
    expectAdvertisement(of: index)
    startConnects()
  }

  /// The reset button: the link ends, RAM is cleared, and it advertises again after 0.3 s.
  mutating func reset(_ index: Int) {
    let start = now + .milliseconds(300)
    lose(key(ofPeripheral: index))
    peripherals[index].values.reset(at: start)
    if peripherals[index].radio.advertises {
      peripherals[index].radio.advertises = false
      plan(at: start) { $0.start(index) }
    }
    startConnects()
  }

  /// Sets a value and notifies subscribers: with a sensor's next sample, else at once.
  /// - Returns: whether the value is possible.
  mutating func setValue(
    _ index: Int, _ characteristic: GATTDatabase.Characteristic, _ bytes: [UInt8]
  ) -> Bool {
    guard let notifications = peripherals[index].values.set(characteristic, to: bytes, at: now) else {
      return false
    }
    for notification in notifications { notify(key(ofPeripheral: index), notification) }
    expectValues(of: index)
    return true
  }

  /// A micro:bit has started after a reset.
  private mutating func start(_ index: Int) {
    peripherals[index].radio.advertises = true
    expectAdvertisement(of: index)
    startConnects()
  }

  /// How well an adapter receives the peripheral; nil: it is out of its range.
  mutating func setStrength(_ index: Int, _ strength: Int?, of adapter: Int) {
    peripherals[index].radio.strengths[adapter] = strength
    expectAdvertisement(of: index)
    startConnects()
  }
}
