import Configuration
import GATT

@testable import Devices

extension DeviceDescription {
  /// A micro:bit with the properties of the profile that are used by default.
  init(_ id: DeviceID, _ address: BluetoothAddress) {
    let properties = Set(Profile.microbit.defaultProperties)
    self.init(id: id, address: address, profile: Profile.microbit.limited(to: properties))
  }
}
