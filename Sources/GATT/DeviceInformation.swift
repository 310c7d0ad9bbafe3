/// The Device Information Service (Bluetooth SIG, DIS 1.1; UUIDs from Assigned Numbers). All its
/// characteristics are UTF-8 text, and a micro:bit lets them be read without pairing.
public enum DeviceInformation {
  public static let service = BluetoothUUID(short: 0x180A)
  /// `BBC micro:bit V2` on a V2.
  public static let modelNumber = BluetoothUUID(short: 0x2A24)
  public static let serialNumber = BluetoothUUID(short: 0x2A25)
  public static let firmwareRevision = BluetoothUUID(short: 0x2A26)
}
