import DBus
import GATT

/// A filter of SetDiscoveryFilter. All keys are checked; only `DuplicateData` has an effect.
enum DiscoveryFilter {
  /// The reply to GetDiscoveryFilters.
  static let keys = ["UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"]

  /// Whether the filter sets `DuplicateData`, and so each advertisement is reported.
  /// - Throws: `InvalidArguments` for an unknown key, a wrong type or an invalid value; what ``DBusValue`` does not have is
  ///   left out before.
  static func reportsAll(_ options: DBusValue) throws(DBusError) -> Bool {
    guard case .dictionary(_, _, let entries) = options else { throw .invalidArguments }
    var (hasDuplicates, hasStrength) = (false, false)
    for entry in entries {
      let value = entry.value.unwrapped
      switch (entry.key.text, value) {
      case ("UUIDs", .array("s", let list)):
        guard list.compactMap(\.text).allSatisfy({ BluetoothUUID($0) != nil }) else {
          throw .invalidArguments
        }
      case ("Transport", .string(let transport)):
        guard ["auto", "bredr", "le"].contains(transport) else { throw .invalidArguments }
      case ("DuplicateData", .boolean(let isOn)): hasDuplicates = isOn
      case ("RSSI", .int16(-127...20)), ("Pathloss", .uint16(0...137)):
        // The two cannot be combined.
        guard !hasStrength else { throw .invalidArguments }
        hasStrength = true
      case ("Discoverable", .boolean), ("Pattern", .string): break
      default: throw .invalidArguments
      }
    }
    return hasDuplicates
  }
}
