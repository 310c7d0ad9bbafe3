/// The Device Information Service (Bluetooth SIG, DIS 1.1; UUIDs from Assigned Numbers). All its
/// characteristics are UTF-8 text, and a micro:bit lets them be read without pairing.
public enum DeviceInformation {
  /// What a characteristic must belong to, to be one of those below.
  public static let service = BluetoothUUID(short: 0x180A)
  /// `BBC micro:bit V2` on a V2.
  public static let modelNumber = BluetoothUUID(short: 0x2A24)
  /// Of a micro:bit: digits made of its chip's DEVICEID (`MicroBit::getSerial` of its runtime).
  public static let serialNumber = BluetoothUUID(short: 0x2A25)
  /// Of a micro:bit: the version of its runtime (MicroBitBLEManager.cpp of microbit-dal and codal-microbit-v2).
  public static let firmwareRevision = BluetoothUUID(short: 0x2A26)

  /// What is read of a peripheral.
  public static let texts = [modelNumber, serialNumber, firmwareRevision]

  /// A value as text, without the zero at the end that some peripherals send; nil for an empty one.
  public static func text(_ bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    return text.isEmpty ? nil : text
  }
}
