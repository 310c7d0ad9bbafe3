import Configuration
import GATT
import JSON

extension PeripheralDescription: ConfigurationSection {
  /// Creates a description without a name and services.
  package init() { self.init(name: "", services: []) }

  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("name", \.name, .text(longest: 248)),
    ConfigurationKey("address", \.address, .optional(.address)),
    ConfigurationKey("advertises", \.advertises, .list(of: .uuid)),
    ConfigurationKey(
      "manufacturer_data", \.manufacturerData,
      .data { UInt16($0.hasPrefix("0x") ? $0.dropFirst(2) : $0[...], radix: 16) }),
    ConfigurationKey("service_data", \.serviceData, .data { BluetoothUUID($0) }),
    ConfigurationKey("services", \.services, .list(of: .section)),
    ConfigurationKey("profile", \.profile, .optional(.profile)),
  ]

  /// Adds the services of a profile.
  private var profile: Profile? {
    get { nil }
    set { if let newValue { add(newValue) } }
  }
}

extension GATTDatabase.Service: ConfigurationSection {
  package init() { self.init(.none, []) }

  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "uuid", \.uuid, .uuid),
    ConfigurationKey("characteristics", \.characteristics, .list(of: .section)),
  ]
}

extension GATTDatabase.Characteristic: ConfigurationSection {
  package init() { self.init(.none, []) }

  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "uuid", \.uuid, .uuid),
    ConfigurationKey("flags", \.flags, .flags),
    ConfigurationKey("value", \.value, .hexadecimal),
    ConfigurationKey("descriptors", \.descriptors, .list(of: .section)),
  ]
}

extension GATTDatabase.Descriptor: ConfigurationSection {
  package init() { self.init(.none, value: []) }

  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "uuid", \.uuid, .uuid),
    ConfigurationKey("value", \.value, .hexadecimal),
  ]
}

extension BluetoothUUID {
  /// The UUID until the key has been read.
  fileprivate static let none = BluetoothUUID(short: 0)
}

extension ConfigurationRule {
  /// Advertised data, `{"004c": "0215"}`, by what `parse` makes of the names.
  fileprivate static func data<Key: Hashable & Sendable>(
    by parse: @escaping @Sendable (String) -> Key?
  ) -> Self where Value == [Key: [UInt8]] {
    ConfigurationRule<[Named<[UInt8]>]>.members(of: .hexadecimal) {
      parse($0) == nil ? ConfigurationProblem("not hexadecimal, or of another length") : nil
    }
    .map(
      { members in
        members.reduce(into: [:]) { data, member in
          if let key = parse(member.name) { data[key] = member.value }
        }
      }, back: { _ in nil })
  }
}

extension ConfigurationRule<Set<GATTDatabase.Flag>> {
  fileprivate static var flags: Self {
    ConfigurationRule<[GATTDatabase.Flag]>.list(of: .choice).map({ Set($0) }, back: { _ in nil })
  }
}
