import Glibc

/// A value of the D-Bus type system (D-Bus specification, "Type System").
public indirect enum DBusValue: Sendable, Hashable {
  case byte(UInt8)
  case boolean(Bool)
  case int16(Int16)
  case uint16(UInt16)
  case int32(Int32)
  case uint32(UInt32)
  case int64(Int64)
  case uint64(UInt64)
  case double(Double)
  case string(String)
  case objectPath(String)
  case signature(String)
  case fileDescriptor(FileDescriptor)
  /// `ay`, kept whole: the values of characteristics come as these.
  case bytes([UInt8])
  /// An array of anything but bytes and dictionary entries; `of` is the signature of an element.
  case array(of: String, [DBusValue])
  /// `a{kv}`, in the order of the wire.
  case dictionary(key: String, value: String, [Entry])
  case structure([DBusValue])
  case variant(DBusValue)

  /// An entry of a dictionary.
  public struct Entry: Sendable, Hashable {
    public var key: DBusValue
    public var value: DBusValue

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

  public var byteArray: [UInt8]? {
    if case .bytes(let bytes) = unwrapped { bytes } else { nil }
  }

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

  public var descriptor: FileDescriptor? {
    // libdbus has none to give when the process is out of them.
    if case .fileDescriptor(let descriptor) = unwrapped, descriptor.raw >= 0 { descriptor } else { nil }
  }
}

/// An open file descriptor that came, or goes, with a message. Closed when nobody holds it any more.
public final class FileDescriptor: Sendable, Hashable {
  public let raw: Int32

  /// Takes over `raw`.
  public init(owning raw: Int32) { self.raw = raw }

  deinit { if raw >= 0 { close(raw) } }

  public static func == (a: FileDescriptor, b: FileDescriptor) -> Bool { a.raw == b.raw }
  public func hash(into hasher: inout Hasher) { hasher.combine(raw) }
}
