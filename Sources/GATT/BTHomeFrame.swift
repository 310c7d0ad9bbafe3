extension BTHome {
  /// Why an advertisement cannot be read.
  public enum Obstacle: Error, Sendable, Hashable {
    /// The advertisement is encrypted, and there is no key.
    case encrypted
    /// The advertisement is not encrypted, although there is a key: anybody may have sent it.
    case notEncrypted
    /// The key is another one, or the advertisement is damaged.
    case wrongKey
    /// The advertisement was sent before: somebody may have recorded it.
    case repeated
    /// The advertisement is of another version of BTHome.
    case version(Int)
  }

  /// The objects of one advertisement. The codec of each property parses it anew.
  public struct Frame: Sendable {
    /// Whether the objects are encrypted, and so cannot be read: there are none, and no packet id.
    public let isEncrypted: Bool
    /// The device sends only when something happens, and is silent until then.
    public let isTriggerOnly: Bool
    /// The number of the frame, equal in all its repetitions; nil: the device does not count its frames.
    public private(set) var packetID: UInt8?
    /// The version of the device's program; nil: not in this frame.
    public private(set) var firmware: String?
    /// The first id that is not known: its length is not either, so what follows it is lost.
    public private(set) var unknownObject: UInt8?
    /// The objects that a property can have, in their order, without one that is cut.
    private var objects: [Object] = []
    /// Why a value may be missing.
    private var end = CodecError.absent

    private struct Object: Sendable {
      let quantity: Quantity
      let content: Content
      let bytes: ArraySlice<UInt8>
    }

    /// - Parameter bytes: the service data.
    public init(_ bytes: [UInt8]) throws(Obstacle) {
      let information = bytes.first ?? 0
      guard information >> 5 == 2 else { throw .version(Int(information >> 5)) }
      isEncrypted = information & 1 != 0
      isTriggerOnly = information & 4 != 0
      if isEncrypted { return }
      var position = BTHome.start(information)
      while position < bytes.count {
        let id = bytes[position]
        guard let object = BTHome.objects[id] else {
          unknownObject = id
          return
        }
        let (start, length) = object.content.place(in: bytes, after: position)
        guard start + length <= bytes.count else {
          end = .tooShort(needed: start + length, bytes: bytes)
          return
        }
        position = start + length
        let value = bytes[start..<position]
        switch (id, object.quantity) {
        case (0x00, _): packetID = value.first
        case (0xF1, _), (0xF2, _): firmware = value.reversed().map(String.init).joined(separator: ".")
        case (_, let quantity?) where !value.isEmpty:
          objects.append(Object(quantity: quantity, content: object.content, bytes: value))
        case (_, _): break
        }
      }
    }

    /// Whether the frame tells of something that has happened.
    public var hasEvents: Bool {
      // A button that nobody presses is an object, too, and has no value.
      objects.contains {
        $0.quantity.entity == .event && (try? $0.content.value($0.bytes, valid: $0.quantity.valid)) != nil
      }
    }

    /// The names of the properties for its objects, in their order: `temperature`, `temperature_2` …
    public var names: [String] {
      var counts: [String: Int] = [:]
      return objects.map { object in
        let index = counts[object.quantity.name, default: 0]
        counts[object.quantity.name] = index + 1
        return BTHome.name(object.quantity.name, at: index)
      }
    }

    /// The value of the object of this quantity; of several, the one at this index.
    package func value(_ name: String, at index: Int) throws(CodecError) -> Value {
      var remaining = index
      for object in objects where object.quantity.name == name {
        if remaining == 0 { return try object.content.value(object.bytes, valid: object.quantity.valid) }
        remaining -= 1
      }
      throw end
    }
  }

  /// A frame whose objects are encrypted, with AES-CCM.
  public struct EncryptedFrame: Sendable {
    private let information: UInt8
    private let address: [UInt8]?
    /// See ``Frame/isTriggerOnly``.
    public var isTriggerOnly: Bool { information & 4 != 0 }
    /// The objects.
    public let ciphertext: [UInt8]
    /// Grows with each frame, by any number.
    public let counter: UInt32
    /// What shows that it was not changed.
    public let tag: [UInt8]

    /// - Parameter bytes: the service data; nil if they are too short.
    public init?(_ bytes: [UInt8]) {
      guard let information = bytes.first else { return nil }
      let start = BTHome.start(information)
      guard bytes.count > start + 8 else { return nil }
      self.information = information
      address = start == 1 ? nil : bytes[1..<7].reversed()
      ciphertext = Array(bytes[start..<bytes.count - 8])
      counter = bytes[(bytes.count - 8)..<(bytes.count - 4)].reversed().reduce(0) { $0 << 8 | UInt32($1) }
      tag = Array(bytes.suffix(4))
    }

    /// - Parameter address: of the device, as it is heard; the frame may have another.
    public func nonce(from address: BluetoothAddress) -> [UInt8] {
      let heard = (0..<6).map { UInt8(truncatingIfNeeded: address.value >> (8 * (5 - $0))) }
      let counter = (0..<4).map { UInt8(truncatingIfNeeded: self.counter >> (8 * $0)) }
      return (self.address ?? heard) + [0xD2, 0xFC, information] + counter
    }

    /// The service data as if it were not encrypted.
    public func plain(_ objects: [UInt8]) -> [UInt8] { [information & ~3] + objects }
  }

  /// Where the objects begin: the device's address may precede them.
  static func start(_ information: UInt8) -> Int { information & 2 != 0 ? 7 : 1 }
}

extension BTHome.Content {
  /// Where the value is whose id is at `position`; a length that is cut counts as 0.
  fileprivate func place(in bytes: [UInt8], after position: Int) -> (start: Int, length: Int) {
    let length = position + 1 < bytes.count ? Int(bytes[position + 1]) : 0
    return switch self {
    case .number(let bytes, _, _), .information(let bytes): (position + 1, bytes)
    case .bool, .button: (position + 1, 1)
    case .dimmer: (position + 1, 2)
    case .timestamp: (position + 1, 4)
    case .command: (position + 2, 1 + length & 0x1F)
    case .text, .raw: (position + 2, length)
    }
  }

  fileprivate func value(_ bytes: ArraySlice<UInt8>, valid: ClosedRange<Double>?) throws(CodecError) -> Value
  {
    switch self {
    case .number(let count, let isSigned, let millionths):
      return try Self.number(bytes, count, isSigned, millionths, valid)
    case .timestamp: return .text(BTHome.time(Self.bits(bytes)))
    case .bool: return .bool(bytes.first != 0)
    case .button: return .text(try word(bytes))
    case .dimmer: return .record([.text(try word(bytes)), .integer(Self.bits(bytes.dropFirst()))])
    case .command: return .record([.text(try word(bytes)), .bytes(Array(bytes.dropFirst()))])
    case .text:
      guard let text = String(validating: bytes, as: UTF8.self) else { throw .notUTF8(Array(bytes)) }
      return .text(text)
    case .raw: return .bytes(Array(bytes))
    case .information: throw .absent
    }
  }

  private static func bits(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  private static func number(
    _ bytes: ArraySlice<UInt8>, _ count: Int, _ isSigned: Bool, _ millionths: Int?,
    _ valid: ClosedRange<Double>?
  ) throws(CodecError) -> Value {
    let (bits, sign) = (bits(bytes), 1 << (8 * count - 1))
    let raw = isSigned && bits >= sign ? bits - 2 * sign : bits
    // The product of integers is exact: only the division rounds.
    let number = millionths.map { Double(raw * $0) / 1_000_000 }
    if let valid, !valid.contains(number ?? Double(raw)) {
      guard raw == (isSigned ? -sign : 2 * sign - 1) else {
        throw .range(value: number ?? Double(raw), allowed: valid)
      }
      return .unknown
    }
    return number.map(Value.number) ?? .integer(raw)
  }

  /// The word of an event. Shelly's programs before 1.0.20 send 0xFE for what is 0x80 in the format.
  private func word(_ bytes: ArraySlice<UInt8>) throws(CodecError) -> String {
    guard let byte = bytes.first, let word = words[self == .button && byte == 0xFE ? 0x80 : Int(byte)] else {
      throw .absent
    }
    return word
  }
}
