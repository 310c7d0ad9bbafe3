import GATT

extension Property {
  static func made(
    _ name: String = "level", access: Property.Access = [.read, .notify], codec: Codec = .uint8,
    frame: String? = nil
  ) -> Property {
    Property(
      name: name, service: BluetoothUUID(short: 0x180F), characteristic: BluetoothUUID(short: 0x2A19),
      access: access, codec: codec, frame: frame)
  }
}
