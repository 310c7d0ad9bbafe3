/// Services and characteristics that replace a peripheral's firmware: a stray write may leave it without a program.
public enum FirmwareUpdate {
  /// The micro:bit V1's DFU and partial flashing (both models; MicroBitDFUService.h, MicroBitPartialFlashingService.h
  /// of microbit-dal), and Nordic's Secure DFU, used by the V2, and legacy DFU.
  public static let services: Set<BluetoothUUID> = [
    .microbit(0x93B0), BluetoothUUID(high: 0xE97D_D91D_251D_470A, low: 0xA062_FA19_22DF_A9A8),
    BluetoothUUID(short: 0xFE59), BluetoothUUID(high: 0x0000_1530_1212_EFDE, low: 0x1523_785F_EABC_D123),
  ]

  /// The characteristics of ``services``, in whatever service they are.
  public static let characteristics: Set<BluetoothUUID> = [
    .microbit(0x93B1), .microbit(0x93B2),
    BluetoothUUID(high: 0xE97D_3B10_251D_470A, low: 0xA062_FA19_22DF_A9A8),
    nordic(0x0001), nordic(0x0002), nordic(0x0003), nordic(0x0004),
    BluetoothUUID(high: 0x0000_1531_1212_EFDE, low: 0x1523_785F_EABC_D123),
    BluetoothUUID(high: 0x0000_1532_1212_EFDE, low: 0x1523_785F_EABC_D123),
  ]

  /// `8ec9xxxx-f315-4f60-9fb8-838830daea50`: control point, packet, buttonless without and with bonds.
  private static func nordic(_ number: UInt16) -> BluetoothUUID {
    BluetoothUUID(high: 0x8EC9_0000_F315_4F60 | UInt64(number) << 32, low: 0x9FB8_8388_30DA_EA50)
  }
}
