/// The Device Information Service (Bluetooth SIG, DIS 1.1; UUIDs from Assigned Numbers). All its
/// characteristics are UTF-8 text, and a micro:bit lets them be read without pairing.
public enum DeviceInformation {
  /// The service of the characteristics below.
  public static let service = BluetoothUUID(short: 0x180A)
  /// `BBC micro:bit V2` on a V2.
  public static let modelNumber = BluetoothUUID(short: 0x2A24)
  /// The serial number: on a micro:bit, digits derived from its chip's DEVICEID (`MicroBit::getSerial` of its runtime).
  public static let serialNumber = BluetoothUUID(short: 0x2A25)
  /// The firmware's version: on a micro:bit, that of its runtime (MicroBitBLEManager.cpp of microbit-dal and
  /// codal-microbit-v2).
  public static let firmwareRevision = BluetoothUUID(short: 0x2A26)

  /// The characteristics that the gateway reads.
  public static let texts = [modelNumber, serialNumber, firmwareRevision]

  /// A value as text, without the terminating zero that some peripherals send; nil if it is empty.
  public static func text(_ bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    return text.isEmpty ? nil : text
  }
}
