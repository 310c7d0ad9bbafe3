/// Names of BlueZ's D-Bus interfaces for peripherals.
enum BlueZServerName {
  static let busName = "org.bluez"
  static let adapter = "org.bluez.Adapter1"
  static let gattManager = "org.bluez.GattManager1"
  static let advertisingManager = "org.bluez.LEAdvertisingManager1"
  static let gattService = "org.bluez.GattService1"
  static let characteristic = "org.bluez.GattCharacteristic1"
  static let advertisement = "org.bluez.LEAdvertisement1"

  static let alreadyExists = "org.bluez.Error.AlreadyExists"
}

/// An error that bluetoothd passes on to the central as an ATT error (`dbus_to_att_error` in `src/gatt-database.c`).
enum AttributeError: String, Error {
  /// 0x07.
  case invalidOffset = "org.bluez.Error.InvalidOffset"
  /// 0x0D.
  case invalidValueLength = "org.bluez.Error.InvalidValueLength"
  /// 0x02 for a read, 0x03 for a write.
  case notPermitted = "org.bluez.Error.NotPermitted"
}
