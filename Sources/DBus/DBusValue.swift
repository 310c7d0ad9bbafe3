import Glibc

/// A value of the D-Bus type system (D-Bus specification, "Type System").
public indirect enum DBusValue: Sendable, Hashable {
  /// `y`, unsigned.
  case byte(UInt8)
  /// `b`.
  case boolean(Bool)
  /// `n`.
  case int16(Int16)
  /// `q`.
  case uint16(UInt16)
  /// `i`.
  case int32(Int32)
  /// `u`.
  case uint32(UInt32)
  /// `x`.
  case int64(Int64)
  /// `t`.
  case uint64(UInt64)
  /// `d`.
  case double(Double)
  /// `s`: UTF-8 without NUL.
  case string(String)
  /// `o`: one that is none is refused when it is to be sent, by ``DBusError/invalid(_:)``.
  case objectPath(String)
  /// `g`: types as text, such as `a{sv}`; checked like an object path.
  case signature(String)
  /// `h`: on the wire a place in the list of those that come with the message.
  case fileDescriptor(FileDescriptor)
  /// `ay`, kept whole: the values of characteristics come as these.
  case bytes([UInt8])
  /// An array of anything but bytes and dictionary entries; `of` is the signature of an element.
  case array(of: String, [DBusValue])
  /// `a{kv}`, in the order of the wire.
  case dictionary(key: String, value: String, [Entry])
  /// `(…)`: at least one member.
  case structure([DBusValue])
  /// `v`: a value that brings its own signature.
  case variant(DBusValue)

  /// An entry of a dictionary.
  public struct Entry: Sendable, Hashable {
    /// Of a basic type, which stands in the signature of the dictionary.
    public var key: DBusValue
    /// Of any single type; mostly a ``DBusValue/variant(_:)``.
    public var value: DBusValue

    /// Of the types of the dictionary that it goes into: libdbus takes others for a mistake of the program.
    public init(_ key: DBusValue, _ value: DBusValue) {
      self.key = key
      self.value = value
    }
  }
}

extension DBusValue {
  /// `a{sv}`, the form in which D-Bus passes named properties and options.
  public static func properties(_ pairs: KeyValuePairs<String, DBusValue>) -> DBusValue {
    .dictionary(key: "s", value: "v", pairs.map { Entry(.string($0.key), .variant($0.value)) })
  }

  /// `as`.
  public static func strings(_ strings: [String]) -> DBusValue {
    .array(of: "s", strings.map(DBusValue.string))
  }

  /// The signature of the value's type.
  public var signature: String {
    switch self {
    case .byte: "y"
    case .boolean: "b"
    case .int16: "n"
    case .uint16: "q"
    case .int32: "i"
    case .uint32: "u"
    case .int64: "x"
    case .uint64: "t"
    case .double: "d"
    case .string: "s"
    case .objectPath: "o"
    case .signature: "g"
    case .fileDescriptor: "h"
    case .bytes: "ay"
    case .array(let element, _): "a" + element
    case .dictionary(let key, let value, _): "a{" + key + value + "}"
    case .structure(let members): "(" + members.map(\.signature).joined() + ")"
    case .variant: "v"
    }
  }

  // MARK: What the value is, looked at through variants; nil when it is something else.

  /// What is in the variant, and in that if it is one again; else the value itself.
  public var unwrapped: DBusValue {
    if case .variant(let inner) = self { inner.unwrapped } else { self }
  }

  /// A string or an object path.
  public var text: String? {
    switch unwrapped {
    case .string(let text), .objectPath(let text): text
    default: nil
    }
  }

  /// A boolean; no number counts as one.
  public var bool: Bool? {
    if case .boolean(let value) = unwrapped { value } else { nil }
  }

  /// Any of the integer types.
  public var integer: Int? {
    switch unwrapped {
    case .byte(let value): Int(value)
    case .int16(let value): Int(value)
    case .uint16(let value): Int(value)
    case .int32(let value): Int(value)
    case .uint32(let value): Int(value)
    case .int64(let value): Int(exactly: value)
    case .uint64(let value): Int(exactly: value)
    default: nil
    }
  }

  /// Bytes that came, or are to go, as `ay`.
  public var byteArray: [UInt8]? {
    if case .bytes(let bytes) = unwrapped { bytes } else { nil }
  }

  /// The strings and object paths of an array; its other elements are left out.
  public var textArray: [String]? {
    if case .array(_, let elements) = unwrapped { elements.compactMap(\.text) } else { nil }
  }

  /// A dictionary whose keys are strings or object paths.
  public var map: [String: DBusValue]? {
    guard case .dictionary(_, _, let entries) = unwrapped else { return nil }
    var map: [String: DBusValue] = [:]
    for entry in entries {
      if let key = entry.key.text { map[key] = entry.value.unwrapped }
    }
    return map
  }

  /// The keys of a dictionary whose keys are integers.
  public var integerKeys: [Int]? {
    guard case .dictionary(_, _, let entries) = unwrapped else { return nil }
    return entries.compactMap(\.key.integer)
  }

  /// A descriptor that is open. It is closed with the last who holds this.
  public var descriptor: FileDescriptor? {
    // libdbus has none to give when the process is out of them.
    if case .fileDescriptor(let descriptor) = unwrapped, descriptor.raw >= 0 { descriptor } else { nil }
  }
}

/// An open file descriptor that came, or goes, with a message. Closed when nobody holds it any more.
public final class FileDescriptor: Sendable, Hashable {
  /// The number; -1 when the message should have brought one and libdbus had none. Not to be closed.
  public let raw: Int32

  /// Takes over `raw`.
  public init(owning raw: Int32) { self.raw = raw }

  deinit { if raw >= 0 { close(raw) } }

  /// By number: of open ones no two have the same.
  public static func == (a: FileDescriptor, b: FileDescriptor) -> Bool { a.raw == b.raw }
  /// By number, as `==` compares.
  public func hash(into hasher: inout Hasher) { hasher.combine(raw) }
}
