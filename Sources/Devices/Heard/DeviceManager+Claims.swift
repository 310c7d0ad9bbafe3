import GATT

/// Claims of gateways for the events of devices that are only heard: see ``HeardEvents``.
extension DeviceManager {
  /// A claim has come from the broker: of this gateway, or of another one.
  package func claimed(_ event: HeardEvents.Event, of address: BluetoothAddress, byThis: Bool) {
    if byThis { context.claimsReturn = true }
    registry.byAddress[address]?.session.claimed(event, byThis: byThis)
  }

  /// Claims do not come back any more.
  package func claimsAreLost() {
    context.claimsReturn = false
    for device in registry.all { device.session.claimsAreLost() }
  }
}
