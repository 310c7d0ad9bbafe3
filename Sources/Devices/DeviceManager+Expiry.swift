import GATT
import Log

/// Which devices are forgotten, and when.
extension DeviceManager {
  /// The days out of range after which a device that nobody has configured is removed. Peripherals that get a new address every
  /// few minutes would soon have all places; others are away over holidays or a winter.
  private func mostDaysUnseen(_ address: BluetoothAddress) -> Int {
    address.mayBePrivate && store.records[address]?.hasPublicAddress != true ? 30 : 365
  }

  /// If the device at `address` is configured, removes one that is not: one that is not online, and of these the one
  /// that was not seen for the longest time.
  /// - Returns: whether there is room now.
  func makeRoom(for address: BluetoothAddress) -> Bool {
    guard isConfigured(address) else { return false }
    let last = registry.all.lazy.filter { !self.isConfigured($0.address) }.min { one, other in
      if one.description.isOnline != other.description.isOnline { return other.description.isOnline }
      return (lastSeen(one), one.address.value) < (lastSeen(other), other.address.value)
    }
    guard let last else { return false }
    log.notice("removing it: a configured device needs its place", last.fields)
    expire(last)
    return true
  }

  /// The clock was set: the times of all devices have changed.
  package func clockWasSet() { for device in registry.all { device.report(.description) } }

  private func lastSeen(_ device: Device) -> Int { device.record.lastSeen ?? 0 }

  /// Notes which devices are in range, once a day, and removes those that nobody has configured and that were not in
  /// range for too many days, unless their silence means nothing. To be called every hour.
  ///
  /// Days on which the gateway did not run are not counted, and a clock that jumps makes no difference.
  /// - Parameter today: counted from 1970-01-01.
  func expireDevices(today: Int) {
    // A record may have a date in the future, noted while the clock was ahead. Tomorrow may be as well, before the clock is set.
    let last = lastExpiry ?? daysSeenBefore.filter { $0 <= today + 1 }.max() ?? daysSeenBefore.max()
    let passed = last.map { today - $0 } ?? 0
    let uncounted = (0...1).contains(passed) ? 0 : passed
    (lastExpiry, daysSeenBefore) = (today, [])
    /// Without the days that are not counted.
    func shifted(_ day: Int) -> Int { max(0, min(day + uncounted, today)) }
    for device in registry.all {
      // What a device sends is not missed on days on which it is offline.
      device.values.removeUnseen(today: today, uncounted: device.description.isOnline ? uncounted : passed)
    }
    for device in Array(registry.all) where !device.hasNoStoredID {
      let before = device.record.lastSeen.map(shifted)
      let isOnline = device.description.isOnline, most = mostDaysUnseen(device.address)
      // A device whose silence means nothing is online all the time.
      let wasHeard = device.record.lastHeard.map { $0.day >= today } ?? isOnline
      if before == nil || wasHeard || device.session.adapters.isInRange {
        store.change(device.address) { $0.lastSeen = today }
      } else if let before, today - before <= most || isOnline || isKept(device.address) {
        store.change(device.address) { $0.lastSeen = before }
      } else {
        log.notice("removing it: it was not in range for \(most) days", device.fields)
        expire(device)
      }
    }
    for (address, record) in store.records where registry.byAddress[address] == nil && record.id == nil {
      expire(address, lastSeen: record.lastSeen.map(shifted) ?? today, today: today)
    }
  }

  /// What a command has set stays, too. It does not keep a place from a device that is configured: a command may be for all.
  private func isKept(_ address: BluetoothAddress) -> Bool {
    isConfigured(address) || store.records[address]?.requested.desired.isEmpty == false
  }

  /// Forgets in time what is known of a peripheral that is no device: no entry matches it any more, or it is pinned to another
  /// gateway.
  private func expire(_ address: BluetoothAddress, lastSeen: Int, today: Int) {
    guard !isKept(address) else { return }
    if today - lastSeen > mostDaysUnseen(address) {
      store.remove(address)
    } else {
      store.change(address) { $0.lastSeen = lastSeen }
    }
  }

  /// Removes a device that becomes one again if it is seen.
  private func expire(_ device: Device) {
    // The writes are abandoned first, as that stores what becomes of their values.
    device.abandonWrites(reason: "the device was removed")
    store.change(device.address) { $0.forget() }
    remove(device, because: .removed)
    passOn(device.id, from: device.address)
  }
}
