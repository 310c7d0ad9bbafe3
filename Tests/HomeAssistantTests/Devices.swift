import Configuration
import GATT

@testable import Devices

extension DeviceDescription {
  /// A micro:bit with the properties of the temperature service.
  init(_ id: DeviceID, _ address: BluetoothAddress) {
    self.init(id: id, address: address, profile: Profile.microbit.limited(to: ["temperature", "period"]))
  }

  /// A new link offers these properties, and all of them can be used.
  mutating func learn(offered: Set<String>) { learn(offered: offered, usable: offered, isNewLink: true) }
}
