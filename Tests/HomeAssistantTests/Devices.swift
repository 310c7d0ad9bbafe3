import Configuration
import GATT
import TestSupport

@testable import Devices

extension DeviceDescription {
  /// A device with this profile, a micro:bit's properties of the temperature service unless it is given.
  init(
    _ id: DeviceID, _ address: BluetoothAddress,
    _ profile: Profile = Profile.microbit.limited(to: ["temperature", "period"])
  ) {
    let settings = DeviceSettings(address, nil, nil, in: Configuration())
    self.init(id: id, settings: settings, record: DeviceRecord(address: address))
    self.settings.adjustedProfile = profile
  }

  /// The device has such an entry in config.json.
  mutating func configure(_ change: (inout Configuration.Device) -> Void) {
    let profile = settings.adjustedProfile
    var entry = Configuration.Device(match: .identifier(address))
    change(&entry)
    settings = DeviceSettings(address, entry, nil, in: Configuration())
    settings.adjustedProfile = profile
  }

  /// A new link offers these properties, and all of them can be used.
  mutating func learn(offered: Set<String>) { learn(offered: offered, usable: offered, isNewLink: true) }
}
