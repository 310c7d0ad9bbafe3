import DBus
import GATT

/// A filter of SetDiscoveryFilter.
struct DiscoveryFilter: Sendable {
  /// The reply to GetDiscoveryFilters.
  static let keys = ["UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"]

  /// If there are any, only peripherals that advertise one of them are reported.
  private var uuids: [String] = []
  /// The minimum signal strength, in dBm.
  private var rssi: Int?
  /// The beginning of a name or of an address.
  private var pattern = ""
  private var classicOnly = false

  /// - Throws: `InvalidArguments` for an unknown key, a wrong type or an invalid value.
  init(_ options: DBusValue) throws(BlueZError) {
    guard case .dictionary(_, _, let entries) = options else { throw .invalidArguments }
    for entry in entries {
      let value = entry.value.unwrapped
      switch (entry.key.text, value) {
      case ("UUIDs", .array("s", let list)):
        uuids = list.compactMap(\.text)
        guard uuids.allSatisfy(Self.isUUID) else { throw .invalidArguments }
        uuids = uuids.compactMap { BluetoothUUID($0)?.description }
      case ("RSSI", .int16(let least)): rssi = Int(least)
      case ("Transport", .string(let transport)):
        guard ["auto", "bredr", "le"].contains(transport) else { throw .invalidArguments }
        classicOnly = transport == "bredr"
      case ("Pattern", .string(let text)): pattern = text
      case ("Pathloss", .uint16), ("DuplicateData", .boolean), ("Discoverable", .boolean): break
      default: throw .invalidArguments
      }
    }
  }

  private static func isUUID(_ text: String) -> Bool {
    let groups = text.split(separator: "-", omittingEmptySubsequences: false)
    guard groups.allSatisfy({ $0.allSatisfy(\.isHexDigit) }) else { return false }
    return groups.map(\.count) == [8, 4, 4, 4, 12] || groups.map(\.count) == [4]
  }

  func matches(_ peripheral: Peripheral, rssi strength: Int) -> Bool {
    !classicOnly && strength >= rssi ?? .min
      && (uuids.isEmpty || uuids.contains(where: peripheral.advertised.contains))
      && (peripheral.name.hasPrefix(pattern) || peripheral.address.hasPrefix(pattern))
  }
}
