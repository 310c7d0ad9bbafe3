/// BTHome, version 2: objects in the service data FCD2 of an advertisement, each an id and a value (https://bthome.io).
public enum BTHome {
  /// One measured quantity or event, by its id.
  struct Object: Sendable {
    /// Several ids may have the same name: the same quantity in another size or resolution.
    let name: String
    let content: Content
  }

  enum Content: Sendable {
    /// A little-endian integer of so many bytes, and how many thousandths one is; nil: it stays an integer.
    case number(bytes: Int, isSigned: Bool, thousandths: Int?)
    case bool
    /// One byte, a word of ``buttonWords``.
    case button
    /// A byte with the length comes first.
    case text
    /// Bytes that no property has.
    case skipped(bytes: Int)
    /// The same, with a byte that holds their number before them.
    case skippedText
  }

  /// 0, no press, is none of them.
  static let buttonWords = [
    1: "press", 2: "double_press", 3: "triple_press", 4: "long_press", 5: "long_double_press",
    6: "long_triple_press", 0x80: "hold_press",
  ]

  private static func u(_ bytes: Int, _ thousandths: Int? = nil) -> Content {
    .number(bytes: bytes, isSigned: false, thousandths: thousandths)
  }

  private static func s(_ bytes: Int, _ thousandths: Int? = nil) -> Content {
    .number(bytes: bytes, isSigned: true, thousandths: thousandths)
  }

  static let objects: [UInt8: Object] = {
    let contents: [(UInt8, String, Content)] = [
      (0x00, "packet_id", .skipped(bytes: 1)), (0x01, "battery", u(1)), (0x02, "temperature", s(2, 10)),
      (0x03, "humidity", u(2, 10)), (0x04, "pressure", u(3, 10)), (0x05, "illuminance", u(3, 10)),
      (0x06, "mass", u(2, 10)), (0x07, "mass_lb", u(2, 10)), (0x08, "dew_point", s(2, 10)),
      (0x09, "count", u(1)), (0x0A, "energy", u(3, 1)), (0x0B, "power", u(3, 10)),
      (0x0C, "voltage", u(2, 1)), (0x0D, "pm2_5", u(2)), (0x0E, "pm10", u(2)), (0x12, "co2", u(2)),
      (0x13, "tvoc", u(2)), (0x14, "moisture", u(2, 10)), (0x2E, "humidity", u(1)), (0x2F, "moisture", u(1)),
      (0x3A, "button", .button), (0x3C, "dimmer", .skipped(bytes: 2)), (0x3D, "count", u(2)),
      (0x3E, "count", u(4)), (0x3F, "rotation", s(2, 100)), (0x40, "distance_mm", u(2)),
      (0x41, "distance", u(2, 100)), (0x42, "duration", u(3, 1)), (0x43, "current", u(2, 1)),
      (0x44, "speed", u(2, 10)), (0x45, "temperature", s(2, 100)), (0x46, "uv_index", u(1, 100)),
      (0x47, "volume", u(2, 100)), (0x48, "volume_ml", u(2)), (0x49, "flow", u(2, 1)),
      (0x4A, "voltage", u(2, 100)), (0x4B, "gas", u(3, 1)), (0x4C, "gas", u(4, 1)),
      (0x4D, "energy", u(4, 1)), (0x4E, "volume", u(4, 1)), (0x4F, "water", u(4, 1)),
      (0x50, "timestamp", u(4)), (0x51, "acceleration", u(2, 1)), (0x52, "gyroscope", u(2, 1)),
      (0x53, "text", .text), (0x54, "raw", .skippedText), (0x55, "volume_storage", u(4, 1)),
      (0x56, "conductivity", u(2)), (0x57, "temperature", s(1)), (0x58, "temperature", s(1, 350)),
      (0x59, "count", s(1)), (0x5A, "count", s(2)), (0x5B, "count", s(4)), (0x5C, "power", s(4, 10)),
      (0x5D, "current", s(2, 1)), (0x5E, "direction", u(2, 10)), (0x5F, "precipitation", u(2, 100)),
      (0x60, "channel", u(1)), (0xF0, "device_type", .skipped(bytes: 2)),
      (0xF1, "firmware", .skipped(bytes: 4)), (0xF2, "firmware", .skipped(bytes: 3)),
    ]
    let flags: [(UInt8, String)] = [
      (0x0F, "generic"), (0x10, "powered"), (0x11, "opening"), (0x15, "battery_low"), (0x16, "charging"),
      (0x17, "carbon_monoxide"), (0x18, "cold"), (0x19, "connectivity"), (0x1A, "door"),
      (0x1B, "garage_door"),
      (0x1C, "gas_detected"), (0x1D, "heat"), (0x1E, "light"), (0x1F, "lock"), (0x20, "wet"),
      (0x21, "motion"), (0x22, "moving"), (0x23, "occupancy"), (0x24, "plug"), (0x25, "presence"),
      (0x26, "problem"), (0x27, "running"), (0x28, "safety"), (0x29, "smoke"), (0x2A, "sound"),
      (0x2B, "tamper"), (0x2C, "vibration"), (0x2D, "window"),
    ]
    let all = contents + flags.map { ($0, $1, Content.bool) }
    return Dictionary(uniqueKeysWithValues: all.map { ($0, Object(name: $1, content: $2)) })
  }()

  /// Those that a property can have.
  static let names: [String] = Set(
    objects.values.compactMap { object in
      switch object.content {
      case .number, .bool, .button, .text: object.name
      case .skipped, .skippedText: nil
      }
    }
  ).sorted()

  /// What the values of this name are; the same for all ids that have it, but for size and resolution.
  static func content(of name: String) -> Content? { objects.values.first { $0.name == name }?.content }

  fileprivate static func value(_ bytes: ArraySlice<UInt8>, _ content: Content) throws(CodecError) -> Value {
    switch content {
    case .number(let count, let isSigned, let thousandths):
      let bits = bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
      let number = isSigned && bits >> (8 * count - 1) == 1 ? bits - 1 << (8 * count) : bits
      // Only the division rounds.
      return thousandths.map { .number(Double(number * $0) / 1000) } ?? .integer(number)
    case .bool: return .bool(bytes.first != 0)
    case .button:
      guard let word = bytes.first.flatMap({ buttonWords[Int($0)] }) else { throw .absent }
      return .text(word)
    case .text:
      guard let text = String(validating: bytes, as: UTF8.self) else { throw .notUTF8(Array(bytes)) }
      return .text(text)
    case .skipped, .skippedText: throw .absent
    }
  }
}

extension BTHome {
  /// What one advertisement says, without the repetition that follows it. Parsed once, for all properties.
  public struct Frame: Sendable {
    /// Its objects cannot be read: there are none, and no packet id.
    public let isEncrypted: Bool
    /// The device sends only when something happens, and is silent until then.
    public let isTriggerOnly: Bool
    /// The same in all repetitions of a frame; nil: the device does not count its frames.
    public private(set) var packetID: UInt8?
    /// The first id that is not known: its length is not either, so what follows it is lost.
    public private(set) var unknownObject: UInt8?
    /// The known objects, in their order; all of them but one that is cut.
    private var objects: [(object: Object, bytes: ArraySlice<UInt8>)] = []
    /// Why a value may be missing.
    private var end = CodecError.absent

    /// - Parameter bytes: the service data.
    public init(_ bytes: [UInt8]) throws(CodecError) {
      guard let information = bytes.first else { throw .tooShort(needed: 1, bytes: bytes) }
      guard information >> 5 == 2 else { throw .version(Int(information >> 5)) }
      isEncrypted = information & 1 != 0
      isTriggerOnly = information & 4 != 0
      if isEncrypted { return }
      // The device's address may precede the objects.
      var position = information & 2 != 0 ? 7 : 1
      while position < bytes.count {
        guard let object = BTHome.objects[bytes[position]] else {
          unknownObject = bytes[position]
          return
        }
        let start: Int
        let length: Int
        switch object.content {
        case .number(let bytes, _, _), .skipped(let bytes): (start, length) = (position + 1, bytes)
        case .bool, .button: (start, length) = (position + 1, 1)
        case .text, .skippedText:
          (start, length) = (position + 2, position + 1 < bytes.count ? Int(bytes[position + 1]) : 0)
        }
        guard start + length <= bytes.count else {
          end = .tooShort(needed: start + length, bytes: bytes)
          return
        }
        if bytes[position] == 0 { packetID = bytes[start] }
        objects.append((object, bytes[start..<start + length]))
        position = start + length
      }
    }

    /// The value of the object of this name; of several, the one at this index.
    package func value(_ name: String, at index: Int) throws(CodecError) -> Value {
      guard !isEncrypted else { throw .encrypted }
      var remaining = index
      for (object, bytes) in objects where object.name == name {
        if remaining == 0 { return try BTHome.value(bytes, object.content) }
        remaining -= 1
      }
      throw end
    }
  }
}
