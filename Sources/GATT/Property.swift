/// A characteristic with a name: a value that a peripheral measures, reports, or accepts.
///
/// A class, as every device, channel and publisher refers to it: as a structure it would be copied for each.
public final class Property: Sendable {
  /// What its values mean.
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A value that lasts: only the newest one matters, and a desired value is set again on the next link.
    case state
    /// Something that happens: each value matters, and only when it arrives. Never read, retained or repeated.
    case event
  }

  /// How a value is written.
  public enum WriteMode: String, Sendable, Hashable, CaseIterable {
    /// A write with response; then the value is read back and compared.
    case confirm
    /// A write with response.
    case request
    /// A write without response: it is not known whether the value arrived.
    case command
  }

  /// The operations that are used on the characteristic.
  public struct Access: OptionSet, Sendable, Hashable {
    /// A bit for each name below; not the bits of the specification.
    public let rawValue: UInt8
    /// The initializer that `OptionSet` requires; bits without a name are ignored.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The value can be read.
    public static let read = Access(rawValue: 1 << 0)
    /// The peripheral sends its values, by notification or indication.
    public static let notify = Access(rawValue: 1 << 1)
    /// The value can be written: see ``WriteMode``.
    public static let write = Access(rawValue: 1 << 2)
  }

  /// Limits how often the retained value of a state is published. Every value is still a reading.
  public struct Report: Sendable, Hashable {
    /// The minimum time between two publications. The last value of the interval is published at its end.
    public var minInterval: Duration
    /// The minimum change of a number, or of one number in a record, in the property's unit.
    public var change: Double

    /// The defaults: every value.
    public init(minInterval: Duration = .zero, change: Double = 0) {
      self.minInterval = minInterval
      self.change = change
    }
  }

  /// Where in a peripheral's advertisements the bytes of a value are.
  public struct Source: Sendable, Hashable {
    /// The kinds of data.
    public enum Data: Sendable, Hashable {
      /// The service data of this service.
      case service(BluetoothUUID)
      /// The data of the company with this number.
      case manufacturer(Int)
      /// What the device sends by MakeCode's radio.
      case radio
    }

    /// The data that holds the value.
    public var data: Data
    /// The data has the value only if it begins with these bytes, which are not part of it.
    public var prefix: [UInt8]
    /// How many bytes the data must have to have the value; nil: any number.
    public var length: Int?
    /// Where the value begins, counted from the begin of the data; then it may end before the data does. Nil: it is what
    /// follows the prefix.
    public var position: Int?

    /// Values without more are all of the data.
    public init(_ data: Data, prefix: [UInt8] = [], length: Int? = nil, position: Int? = nil) {
      self.data = data
      self.prefix = prefix
      self.length = length
      self.position = position
    }

    /// The bytes of the value; nil: the data has none.
    /// - Parameter width: of a value that has a fixed one.
    public func value(in data: [UInt8], width: Int?) -> [UInt8]? {
      guard data.starts(with: prefix), length ?? data.count == data.count else { return nil }
      guard let position else { return Array(data.dropFirst(prefix.count)) }
      let rest = data.dropFirst(position)
      return Array(rest.prefix(width ?? rest.count))
    }
  }

  /// The name, as used in topics: `[a-z][a-z0-9_]{0,63}`.
  public let name: String
  /// Where the values are, if they come in advertisements or by radio: the property then has no characteristic, and what
  /// follows about one does not hold.
  public let source: Source?
  /// The service that the characteristic belongs to.
  public let service: BluetoothUUID
  /// The characteristic that holds the value.
  public let characteristic: BluetoothUUID
  /// The characteristic that is used instead if ``characteristic`` does not support ``access``.
  public let alternative: BluetoothUUID?
  /// The index among the characteristics with that UUID in the service, from 0.
  public let instance: Int
  /// State or event.
  public let kind: Kind
  /// The characteristic must support all of these operations.
  public let access: Access
  /// How the value is written; without ``Access/write``, not used.
  public let writeMode: WriteMode
  /// The wait between a write and its read-back, in which the peripheral adjusts the value; nil: none.
  public let settle: Duration?
  /// Converts between the characteristic's bytes and the value.
  public let codec: Codec
  /// The unit of the values: `°C`, `ms`.
  public let unit: String?
  /// What is added to the numbers that are read or notified; see ``adjusted(offset:unit:report:)``.
  public let offset: Double?
  /// The numbers that a command may set; nil: all that the codec can encode.
  public let range: ClosedRange<Double>?
  /// The maximum length in bytes of a text or bytes in a command; nil: that of a characteristic.
  public let maxLength: Int?
  /// The delimiter at the end of a text, such as a line: it may arrive in several notifications, and is added to what is
  /// sent. Nil: each notification is a value, and values are sent as they are.
  public let frame: String?
  /// A value is written in pieces of at most this many bytes; nil: in one.
  public let chunk: Int?
  /// The interval at which the value is read, instead of being notified; nil: it is notified, or not read repeatedly.
  public let poll: Duration?
  /// The limit on how often the retained value is published; nil: every value is published.
  public let report: Report?
  /// The value that is written on every link unless another one is desired.
  public let initial: Value?
  /// Whether the initial value is written on every link before any property is read.
  public let isBeforeReading: Bool
  /// Whether the property is used if the peripheral has it, unless the configuration selects others.
  public let isAutomatic: Bool
  /// How Home Assistant shows the property.
  public let homeAssistant: [HomeAssistantEntity]

  /// Does not validate: that is done when a ``Profile`` is made of the property.
  ///
  /// - Parameters:
  ///   - source: nil, unless the property has no characteristic.
  ///   - writeMode: nil: `confirm` for a state that can be read, else `request`.
  ///   - offset: see ``adjusted(offset:unit:report:)``.
  public init(
    name: String, source: Source? = nil, service: BluetoothUUID, characteristic: BluetoothUUID,
    alternative: BluetoothUUID? = nil, instance: Int = 0, kind: Kind = .state, access: Access,
    writeMode: WriteMode? = nil, settle: Duration? = nil, codec: Codec, unit: String? = nil,
    offset: Double? = nil, range: ClosedRange<Double>? = nil, maxLength: Int? = nil, frame: String? = nil,
    chunk: Int? = nil, poll: Duration? = nil, report: Report? = nil, initial: Value? = nil,
    isBeforeReading: Bool = false, isAutomatic: Bool = false, homeAssistant: [HomeAssistantEntity] = []
  ) {
    self.name = name
    self.source = source
    self.service = service
    self.characteristic = characteristic
    self.alternative = alternative
    self.instance = instance
    self.kind = kind
    self.access = access
    self.writeMode = writeMode ?? (kind == .state && access.contains(.read) ? .confirm : .request)
    self.settle = settle
    self.codec = codec
    self.unit = unit
    self.offset = offset
    self.range = range
    self.maxLength = maxLength
    self.frame = frame
    self.chunk = chunk
    self.poll = poll
    self.report = report
    self.initial = initial
    self.isBeforeReading = isBeforeReading
    self.isAutomatic = isAutomatic
    self.homeAssistant = homeAssistant
  }

  /// A property whose values come in advertisements or by radio: like one that is notified.
  public convenience init(
    name: String, source: Source, kind: Kind = .state, codec: Codec, unit: String? = nil,
    report: Report? = nil, isAutomatic: Bool = false, homeAssistant: [HomeAssistantEntity] = []
  ) {
    self.init(
      name: name, source: source, service: BluetoothUUID(short: 0), characteristic: BluetoothUUID(short: 0),
      kind: kind, access: .notify, codec: codec, unit: unit, report: report, isAutomatic: isAutomatic,
      homeAssistant: homeAssistant)
  }

  /// Whether the value can be read.
  public var isReadable: Bool { access.contains(.read) }
  /// Whether the peripheral can send its values.
  public var isNotifying: Bool { access.contains(.notify) }
  /// Whether commands may set it.
  public var isWritable: Bool { access.contains(.write) }

  /// The unit of the values, or of a field of them: its own, else the property's, unless it has words or the like.
  public func unit(of field: String?) -> String? {
    guard let field else { return unit }
    return codec.units[field] ?? (codec.content(of: field)?.isNumber == false ? nil : unit)
  }

  /// The property with an offset, and with what is not nil. With another unit, the device class of an entity does not fit
  /// any more, unless it shows a field with a unit of its own.
  public func adjusted(offset: Double?, unit: String?, report: Report?) -> Property {
    var entities = homeAssistant
    if let unit, unit != self.unit {
      for index in entities.indices where entities[index].field.flatMap({ codec.units[$0] }) == nil {
        (entities[index].deviceClass, entities[index].unit) = (nil, nil)
      }
    }
    return Property(
      name: name, source: source, service: service, characteristic: characteristic, alternative: alternative,
      instance: instance, kind: kind, access: access, writeMode: writeMode, settle: settle, codec: codec,
      unit: unit ?? self.unit, offset: offset, range: range, maxLength: maxLength, frame: frame, chunk: chunk,
      poll: poll, report: report ?? self.report, initial: initial, isBeforeReading: isBeforeReading,
      isAutomatic: isAutomatic, homeAssistant: entities)
  }

  /// The most bytes of a text that the property is to be set to, without the delimiter of a ``frame``; nil: as many as a
  /// characteristic has.
  public var longestText: Int? { maxLength.map { max(0, $0 - (frame?.utf8.count ?? 0)) } }

  /// Encodes a value that the property is to be set to. Unlike ``Codec/encode(_:)``, adds the delimiter of a ``frame`` if
  /// the value does not end with it, and checks ``range`` and ``maxLength``.
  public func encode(_ value: Value) throws(CodecError) -> EncodedValue {
    // The range is checked before encoding, as the codec rounds a number just outside to the nearest one that it can encode.
    if let range = range ?? codec.range, let number = value.doubleValue, !range.contains(number) {
      throw .range(value: number, allowed: range)
    }
    var bytes = try codec.encodeAnyLength(value)
    let sent = bytes.count
    if let frame, !bytes.suffix(frame.utf8.count).elementsEqual(frame.utf8) { bytes += frame.utf8 }
    let most = maxLength ?? Codec.longestValue
    guard bytes.count <= most else {
      // The delimiter that is added here is not the sender's.
      throw .tooLong(count: sent, most: most - (bytes.count - sent))
    }
    return EncodedValue(value, bytes)
  }
}

extension Property: Equatable {
  /// Compares everything.
  public static func == (a: Property, b: Property) -> Bool {
    a === b
      || a.name == b.name && a.source == b.source && a.service == b.service
        && a.characteristic == b.characteristic && a.alternative == b.alternative && a.instance == b.instance
        && a.kind == b.kind && a.access == b.access && a.writeMode == b.writeMode && a.settle == b.settle
        && a.codec == b.codec && a.unit == b.unit && a.offset == b.offset && a.range == b.range
        && a.maxLength == b.maxLength && a.frame == b.frame && a.chunk == b.chunk && a.poll == b.poll
        && a.report == b.report && a.initial == b.initial && a.isBeforeReading == b.isBeforeReading
        && a.isAutomatic == b.isAutomatic && a.homeAssistant == b.homeAssistant
  }
}

/// A value together with the bytes that stand for it. Equal where the bytes are: two values may have the same bytes,
/// and a peripheral knows bytes alone.
public struct EncodedValue: Sendable, Equatable {
  /// The decoded value.
  public let value: Value
  /// The value of the characteristic.
  public let bytes: [UInt8]

  /// Does not validate, for a value that was decoded from these bytes; ``Property/encode(_:)`` validates.
  public init(_ value: Value, _ bytes: [UInt8]) {
    self.value = value
    self.bytes = bytes
  }

  /// Compares the bytes.
  public static func == (a: EncodedValue, b: EncodedValue) -> Bool { a.bytes == b.bytes }
}
