import DBus
import GATT
import Peripherals

/// The services of a peripheral on the bus, and their change on a link (Service Changed).
extension Bluetoothd {
  /// The peripheral has a service, or no longer has it.
  ///
  /// Service Changed tells bluetoothd on a link: as recorded (service_changed), the objects of what went are
  /// removed, `UUIDs` is set, then what came is added; `ServicesResolved` stays true, and operations in flight on what
  /// went are never answered. Without a link bluetoothd finds out on the next one.
  mutating func serve(_ peripheral: Int, _ service: UInt16, _ isOffered: Bool) {
    let index = key(ofPeripheral: peripheral)
    if isOffered {
      peripherals[index].hidden.remove(service)
    } else {
      peripherals[index].hidden.insert(service)
    }
    if devices[index]?.isUsable == true {
      withdrawServices(of: index)
      change(device: index, [("UUIDs", .strings(peripherals[index].uuids))])
      exportServices(of: index)
    }
  }

  /// Adds the objects of services that are not on the bus yet.
  mutating func exportServices(of index: DeviceKey) {
    guard let device = devices[index] else { return }
    for service in peripherals[index].services where !device.exported.contains(service.handle) {
      devices[index]?.exported.insert(service.handle)
      let servicePath = Self.servicePath(device.path, service.handle)
      add(servicePath, .service, under: device.path, Describe.service(service, of: device.path))
      for characteristic in service.characteristics {
        let path = Self.characteristicPath(device.path, service.handle, characteristic.handle)
        add(
          path, .characteristic(index, characteristic.handle), under: servicePath,
          Describe.characteristic(characteristic, of: servicePath))
        for descriptor in characteristic.descriptors {
          add(
            "\(path)/desc\(Hexadecimal.text(descriptor.handle, bytes: 2))",
            .descriptor(index, descriptor.handle), under: path, Describe.descriptor(descriptor, of: path))
        }
      }
    }
  }

  /// Removes the objects of services that the peripheral no longer has.
  mutating func withdrawServices(of index: DeviceKey) {
    guard let device = devices[index] else { return }
    let hidden = peripherals[index].hidden
    for service in peripherals[index].database.services
    where hidden.contains(service.handle) && device.exported.contains(service.handle) {
      devices[index]?.exported.remove(service.handle)
      for handle in service.characteristics.map(\.handle) {
        if let channel = device.subscriptions[handle]?.channel { emit(.hangUp(channel)) }
        devices[index]?.subscriptions[handle] = nil
        devices[index]?.operations.removeAll { $0.handle == handle }
      }
      emit(tree.remove(Self.servicePath(device.path, service.handle)))
    }
  }
}
