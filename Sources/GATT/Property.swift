/// One thing that a peripheral measures or that can be set on it: a characteristic with a name.
public struct Property: Sendable, Hashable {
  /// What can be done with the characteristic.
  public struct Access: OptionSet, Sendable, Hashable {
    /// A bit for each name here, in an order of our own.
    public let rawValue: UInt8
    /// For `OptionSet`: bits without a name here mean nothing.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Read when the link is new, and after every write.
    public static let read = Access(rawValue: 1 << 0)
    /// Tells its values by itself: each is a reading, and a sign of life.
    public static let notify = Access(rawValue: 1 << 1)
    /// Written with response. With ``read``, every write is confirmed by reading back.
    public static let write = Access(rawValue: 1 << 2)
  }

  /// The name as it stands in topics: `[a-z0-9_]+`.
  public let name: String
  /// The service that the characteristic is looked for in.
  public let service: BluetoothUUID
  /// Of several with this UUID in the service the first is taken.
  public let characteristic: BluetoothUUID
  /// Between the characteristic's bytes and the number that topics carry.
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

  /// Whether its value can be asked for: when the link is new, and after a write.
  public var isReadable: Bool { access.contains(.read) }
  /// Whether its values come by themselves, once they are subscribed to.
  public var isNotifying: Bool { access.contains(.notify) }
  /// Whether commands may set it: only then has it topics for them and their results.
  public var isWritable: Bool { access.contains(.write) }
}
