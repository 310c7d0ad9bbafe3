/// One thing that a peripheral measures, reports, or lets be set: a characteristic with a name.
public struct Property: Sendable, Hashable {
  /// What its values mean.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Something that lasts: the newest value counts, and what was set can be set again on the next link.
    case state
    /// Something that happens: every value counts once, and only when it comes. Never read, retained or repeated.
    case event
  }

  /// How a value is written.
  public enum WriteMode: String, Sendable, Hashable, CaseIterable {
    /// With response; then it is read back and compared.
    case confirm
    /// With response.
    case request
    /// Without response: nobody knows whether it came.
    case command
  }

  /// What can be done with the characteristic.
  public struct Access: OptionSet, Sendable, Hashable {
    /// A bit for each name here, in an order of our own.
    public let rawValue: UInt8
    /// For `OptionSet`: bits without a name here mean nothing.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Its value can be asked for.
    public static let read = Access(rawValue: 1 << 0)
    /// Its values come by themselves, by notification or indication.
    public static let notify = Access(rawValue: 1 << 1)
    /// It can be written: see ``WriteMode``.
    public static let write = Access(rawValue: 1 << 2)
  }

  /// Bounds what is published of a state; every value remains a reading and a sign of life.
  public struct Report: Sendable, Hashable {
    /// At least this long from one to the next. The last value of the interval is published at its end.
    public var minInterval: Duration
    /// At least so much must a number, or one of a record's, have changed, in its unit.
    public var change: Double

    /// Every value, unless something is given.
    public init(minInterval: Duration = .zero, change: Double = 0) {
      self.minInterval = minInterval
      self.change = change
    }
  }

  /// How the values of a property that can notify are obtained.
  public enum Subscription: String, Sendable, Hashable, CaseIterable {
    /// By D-Bus signals: BlueZ's `StartNotify`.
    case signal
    /// Through a socket: BlueZ's `AcquireNotify`.
    case socket
    /// It is not subscribed to but read, as often as ``Property/poll`` says.
    case poll
  }

  /// The name as it stands in topics: `[a-z][a-z0-9_]*`.
  public let name: String
  /// The service that the characteristic belongs to.
  public let service: BluetoothUUID
  /// The characteristic that holds the value.
  public let characteristic: BluetoothUUID
  /// Which of the characteristics of that UUID in the service it is; 0: the first.
  public let instance: Int
  /// Whether its values last.
  public let kind: Kind
  /// What is done with it; the characteristic must allow that.
  public let access: Access
  /// Of use with ``Access/write`` only.
  public let writeMode: WriteMode
  /// Between the characteristic's bytes and the value.
  public let codec: Codec
  /// The unit of the values, as people write it: `°C`, `ms`.
  public let unit: String?
  /// What a command may ask for, of a number; nil: what the codec can encode.
  public let range: ClosedRange<Double>?
  /// Of text or bytes that a command asks for, in bytes; nil: what the characteristic holds.
  public let maxLength: Int?
  /// What ends a text that comes in several notifications, a line for instance; nil: each notification is a value.
  public let frame: String?
  /// A value that is written goes in pieces of so many bytes; nil: in one.
  public let chunk: Int?
  /// Nil: as the configuration's `bluetooth.notify` says.
  public let notify: Subscription?
  /// How often it is read.
  public let poll: Duration?
  /// Nil: every value is published.
  public let report: Report?
  /// The desired value where the configuration names none: written on every link.
  public let initial: Value?
  /// How Home Assistant shows it; nil: not at all.
  public let homeAssistant: HomeAssistantEntity?

  /// Whether all of this fits together is found when a ``Profile`` is made of it.
  ///
  /// - Parameter writeMode: nil: `confirm` for a state that can be read, else `request`.
  public init(
    name: String, service: BluetoothUUID, characteristic: BluetoothUUID, instance: Int = 0,
    kind: Kind = .state, access: Access, writeMode: WriteMode? = nil, codec: Codec, unit: String? = nil,
    range: ClosedRange<Double>? = nil, maxLength: Int? = nil, frame: String? = nil, chunk: Int? = nil,
    notify: Subscription? = nil,
    poll: Duration? = nil, report: Report? = nil, initial: Value? = nil,
    homeAssistant: HomeAssistantEntity? = nil
  ) {
    self.name = name
    self.service = service
    self.characteristic = characteristic
    self.instance = instance
    self.kind = kind
    self.access = access
    self.writeMode = writeMode ?? (kind == .state && access.contains(.read) ? .confirm : .request)
    self.codec = codec
    self.unit = unit
    self.range = range
    self.maxLength = maxLength
    self.frame = frame
    self.chunk = chunk
    self.notify = notify
    self.poll = poll
    self.report = report
    self.initial = initial
    self.homeAssistant = homeAssistant
  }

  /// Whether its value can be asked for.
  public var isReadable: Bool { access.contains(.read) }
  /// Whether its values can come by themselves.
  public var isNotifying: Bool { access.contains(.notify) }
  /// Whether commands may set it: only then has it topics for them and their results.
  public var isWritable: Bool { access.contains(.write) }

  /// The bytes for a value that a command, a request or the configuration asks for: within ``range`` and
  /// ``maxLength``, which ``Codec/encode(_:)`` does not know.
  public func encode(_ value: Value) throws(CodecError) -> [UInt8] {
    if let range, let number = value.doubleValue, !range.contains(number) {
      throw .range(value: number, allowed: range)
    }
    let bytes = try codec.encode(value)
    if let maxLength, bytes.count > maxLength { throw .tooLong(count: bytes.count, most: maxLength) }
    return bytes
  }
}
