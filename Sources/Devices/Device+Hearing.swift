import BlueZ
import GATT

/// A device that is only heard: its values come in its advertisements, whichever adapter receives them.
extension Device {
  /// Anybody can send advertisements from a thousand addresses: only devices that the configuration calls by a name or an
  /// id fill the log.
  var isAnonymous: Bool {
    isHeard && settings.source(of: \.name) == .default
      && (settings.source(of: \.id) == .default || settings.hasSharedID)
  }

  /// An adapter reports what it knows of the peripheral, which may be an advertisement or not.
  func hear(_ seen: Peripheral, by adapter: Int) {
    guard reports.updateValue(seen.lastReport, forKey: adapter) ?? 0 != seen.lastReport, isReceiving else {
      return
    }
    let before = (description.offered, description.rssi)
    if let rssi = seen.rssi, session.adapters.isCurrent(adapter) { follow(rssi) }
    let heard = channels.compactMap { channel in channel.hear(seen.advertised).map { (channel, $0) } }
    var values: [(channel: Channel, value: Value)] = []
    for (channel, result) in heard {
      switch result {
      case .success(let value): values.append((channel, value))
      case .failure: break
      }
    }
    // Something else may share its advertisements with it.
    guard description.isOnline || !values.isEmpty else { return }
    description.learn(
      offered: Set(values.map(\.channel.property.name)), usable: Set(channels.map(\.property.name)),
      isNewLink: false)
    description.reports += 1
    if !description.isOnline { description.adapter = context.adapters[adapter].name }
    if !values.isEmpty { session.heard(nil) }
    session.keepOnline()
    if (description.offered, description.rssi) != before {
      context.store.change(address) { $0.offered = description.offered }
      report(.description)
    }
    for (channel, value) in values { channel.receive(value) }
  }

  /// Signals vary: a change is told when their mean has changed by 10 dB.
  private func follow(_ rssi: Int) {
    let mean = description.isOnline ? signal.map { ($0 * 3 + Double(rssi)) / 4 } : nil
    let signal = mean ?? Double(rssi)
    self.signal = signal
    if !description.isOnline || abs(signal - Double(description.rssi ?? 0)) >= 10 {
      description.rssi = Int(signal.rounded())
    }
  }
}
