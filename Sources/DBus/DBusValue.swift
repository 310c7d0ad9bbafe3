import Glibc

/// A value of the D-Bus type system (D-Bus specification, "Type System"). A received value of a type that is not here (`x`,
/// `t`, `d`, `g`) is left out, with the entry of a dictionary that has it.
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
  /// `s`: UTF-8 without NUL.
  case string(String)
  /// `o`; an invalid path is rejected when it is sent, with ``DBusError/invalid(_:)``.
  case objectPath(String)
  /// `h`: sent as an index into the descriptors of the message.
  case fileDescriptor(FileDescriptor)
  /// `ay`, as one value: values of characteristics have this type.
  case bytes([UInt8])
  /// An array of anything but bytes and dictionary entries; `of` is the signature of an element.
  case array(of: String, [DBusValue])
  /// `a{kv}`, in the order of the message.
  case dictionary(key: String, value: String, [Entry])
  /// `(…)`: at least one member.
  case structure([DBusValue])
  /// `v`: a value with its own signature.
  case variant(DBusValue)

  /// An entry of a dictionary.
  public struct Entry: Sendable, Hashable {
    /// The key, of a basic type: the dictionary's key type.
    public var key: DBusValue
    /// The value, of the dictionary's value type, usually a ``DBusValue/variant(_:)``.
    public var value: DBusValue

    /// The types must be those of the dictionary that contains the entry: libdbus aborts the process otherwise.
    public init(_ key: DBusValue, _ value: DBusValue) {
      self.key = key
      self.value = value
    }
  }
}

extension DBusValue {
  /// `a{sv}`: named properties and options.
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
    case .string: "s"
    case .objectPath: "o"
    case .fileDescriptor: "h"
    case .bytes: "ay"
    case .array(let element, _): "a" + element
    case .dictionary(let key, let value, _): "a{" + key + value + "}"
    case .structure(let members): "(" + members.map(\.signature).joined() + ")"
    case .variant: "v"
    }
  }

  // MARK: Contents, also of variants; nil if the value is of another type

  /// The content of a variant, also of nested ones; else the value itself.
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

  /// A boolean; numbers do not count.
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
    default: nil
    }
  }

  /// `ay`.
  public var byteArray: [UInt8]? {
    if case .bytes(let bytes) = unwrapped { bytes } else { nil }
  }

  /// The strings and object paths of an array; other elements are omitted.
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

  /// The entries of a dictionary.
  public var entries: [Entry]? {
    if case .dictionary(_, _, let entries) = unwrapped { entries } else { nil }
  }
}

/// An open file descriptor that is sent or received with a message, closed with the last reference.
public final class FileDescriptor: Sendable, Hashable {
  /// The number; -1 if libdbus could not provide one. Not to be closed.
  public let raw: Int32

  /// Becomes the owner of `raw`.
  public init(owning raw: Int32) { self.raw = raw }

  deinit { if raw >= 0 { close(raw) } }

  /// Compares the numbers: open descriptors have different ones.
  public static func == (a: FileDescriptor, b: FileDescriptor) -> Bool { a.raw == b.raw }
  /// Hashes the number.
  public func hash(into hasher: inout Hasher) { hasher.combine(raw) }
}
