import Configuration
import GATT
import Log

/// What speaks for one of two gateways as the owner of a device. Both compare the same two claims, and prefer the same one:
/// otherwise each would publish the device again because the other did.
struct Claim: Equatable, Sendable {
  let gateway: GatewayID
  /// The id by which that gateway knows the device.
  let id: DeviceID
  /// Since when the device is online there; nil: it is not.
  let since: Timestamp?
  /// Whether that gateway connects to the device, which one alone can do at a time.
  let isExclusive: Bool
  /// Whether it is connected now. A device in turns stays online between two links.
  let hasLink: Bool
  /// The signal strength there, in dBm.
  let rssi: Int?
  /// When the device was heard there last, if its silence does not make it offline: by the clock of the gateway that compares.
  let lastHeard: Timestamp?

  /// How much better a gateway must hear a device than its owner, in dB, to own it: signals vary.
  private static let margin = 10
  /// Two gateways may report one frame some seconds apart.
  private static let long = Duration.seconds(60)

  /// Whether this claim goes before that of the gateway which has published the device last.
  ///
  /// A gateway that connects to the device goes before one that only hears it, and one that is connected now before one that
  /// was, as the clocks of two gateways may differ by hours. Of two links the later one counts: the id of the gateway decides
  /// between two that are as new. A device that is only heard stays with the gateway that published it last, unless that one has
  /// not heard it for long, or it is heard better here, lately; under two ids nothing says which gateway was the last, and the
  /// id of the device decides.
  func goesBefore(
    _ other: Claim, isOnline: Bool, of address: BluetoothAddress, at now: Timestamp = .now
  ) -> Bool {
    guard let since else { return other.since == nil && id != other.id && hasBetterID(than: other, address) }
    guard let otherSince = other.since else { return true }
    guard isExclusive == other.isExclusive else { return isExclusive || !isOnline }
    if isExclusive, hasLink != (other.hasLink && isOnline) { return hasLink }
    if isExclusive { return (since, gateway.description) > (otherSince, other.gateway.description) }
    if !isOnline { return true }
    if id != other.id { return hasBetterID(than: other, address) }
    // Where silence means nothing, it does not go offline at a gateway that hears it no more.
    if let lastHeard {
      if let last = other.lastHeard, last + Self.long < lastHeard { return true }
      // How well it was heard long ago does not count: three gateways would take it from each other without end.
      if lastHeard + Self.long < now { return false }
    }
    return (rssi ?? -128) >= (other.rssi ?? -128) + Self.margin
  }

  /// An id that was chosen goes before the one made of the address; of two that were chosen, the first by the alphabet.
  private func hasBetterID(than other: Claim, _ address: BluetoothAddress) -> Bool {
    func rank(_ id: DeviceID) -> (Int, String) { (id == DeviceID(address) ? 1 : 0, id.description) }
    return rank(id) < rank(other.id)
  }
}

extension OwnershipMachine.Notice {
  var claim: Claim {
    Claim(
      gateway: gateway, id: id, since: liveSince, isExclusive: isExclusive, hasLink: hasLink,
      rssi: rssi.map { Int($0) }, lastHeard: heardSince)
  }
}
