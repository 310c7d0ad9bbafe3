import BlueZ
import GATT

/// Peripherals with private addresses (Core Specification Vol 3, Part C, 10.7). Once bluetoothd has a bond with one, it tells its
/// identity address: at first for the same object, from its next start on for another one. The device keeps the address by which
/// it was found, as `config.json`, its topics and other gateways have that.
extension DeviceManager {
  /// The peripheral with the address of its device.
  func known(_ seen: Peripheral) -> Peripheral {
    let device = registry.byPeripheral[seen.id]
    // If another device had that address already, it goes on with it from the next start of bluetoothd on.
    if let device, device.address != seen.address,
      registry.byAddress[store.address(ofIdentity: seen.address) ?? seen.address] == nil
    {
      log.info("its identity address is \(seen.address)", device.fields)
      store.setIdentity(seen.address, of: device.address)
    }
    let address = device?.address ?? knownAddress(seen.address)
    guard address != seen.address else { return seen }
    var known = seen
    known.address = address
    return known
  }

  /// The address of the device that has this identity address; the same if an entry or a request has named that itself.
  func knownAddress(_ address: BluetoothAddress) -> BluetoothAddress {
    guard let known = store.address(ofIdentity: address), registry.byAddress[address] == nil,
      !isKnownByAddress(address)
    else { return address }
    return known
  }

  /// Reports the peripheral at the address of a device again, if an adapter knows it.
  func replayPeripheral(at address: BluetoothAddress) {
    for address in [address, store.records[address]?.identity].compactMap({ $0 }) {
      for central in context.centrals { central.replayPeripheral(at: address) }
    }
  }

  /// The peripherals that are in range now, the strongest first, each once.
  package var peripheralsInRange: [Peripheral] {
    let found = ScanRequest()
    for peripheral in context.centrals.flatMap(\.peripherals) { found.add(known(peripheral)) }
    return found.peripherals
  }
}
