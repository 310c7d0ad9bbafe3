/// One thing that a peripheral measures or that can be set on it: a characteristic with a name.
public struct Property: Sendable, Hashable {
  /// What can be done with the characteristic.
  public struct Access: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let read = Access(rawValue: 1 << 0)
    public static let notify = Access(rawValue: 1 << 1)
    /// Written with response. With ``read``, every write is confirmed by reading back.
    public static let write = Access(rawValue: 1 << 2)
  }

  /// The name as it stands in topics: `[a-z0-9_]+`.
  public let name: String
  public let service: BluetoothUUID
  public let characteristic: BluetoothUUID
  public let codec: Codec
  let access: Access
  /// The unit of the values, as people write it: `°C`, `ms`.
  public let unit: String
  /// The values that a command may ask for; of use with ``Access/write`` only.
  public let range: ClosedRange<Int>
  /// How Home Assistant shows it; nil: not at all.
  public let homeAssistant: HomeAssistantEntity?

  /// - Parameter range: what commands may ask for; everything that the bytes can hold when nil.
  public init(
    name: String, service: BluetoothUUID, characteristic: BluetoothUUID, codec: Codec, access: Access,
    unit: String, range: ClosedRange<Int>? = nil, homeAssistant: HomeAssistantEntity? = nil
  ) {
    self.name = name
    self.service = service
    self.characteristic = characteristic
    self.codec = codec
    self.access = access
    self.unit = unit
    self.range = range ?? codec.range
    self.homeAssistant = homeAssistant
  }

  public var isReadable: Bool { access.contains(.read) }
  public var isNotifying: Bool { access.contains(.notify) }
  public var isWritable: Bool { access.contains(.write) }
}
