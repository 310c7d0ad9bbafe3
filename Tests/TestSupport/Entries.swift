import Configuration
import GATT

extension Configuration.Match {
  /// The peripheral at an address.
  package static func identifier(_ address: BluetoothAddress) -> Self {
    var match = Self()
    match.identifier = address
    return match
  }

  /// All whose names begin alike.
  package static func namePrefix(_ prefix: String) -> Self {
    var match = Self()
    match.namePrefix = prefix
    return match
  }
}

extension Configuration.Device {
  /// An entry with the defaults for what is not given.
  package init(match: Configuration.Match, id: DeviceID? = nil) {
    self.init()
    self.match = match
    self.id = id
  }
}
