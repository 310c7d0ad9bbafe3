import FoundationEssentials
import TestSupport

/// A JSON value, parsed independently of the gateway's own parser.
indirect enum JSON: Codable, Equatable, Sendable {
  case null
  case bool(Bool)
  case int(Int)
  case double(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int.self) {
      self = .int(value)
    } else if let value = try? container.decode(Double.self) {
      self = .double(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .int(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }

  /// As JSON.
  var text: String { (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "" }

  /// - Throws: ``Failure``, which includes the text.
  static func parse(_ bytes: [UInt8]) throws -> JSON {
    do {
      return try JSONDecoder().decode(JSON.self, from: Data(bytes))
    } catch {
      throw Failure("not JSON: \(String(decoding: bytes, as: UTF8.self)): \(error)")
    }
  }

  static func parse(_ text: String) throws -> JSON { try parse(Array(text.utf8)) }

  subscript(_ key: String) -> JSON? {
    if case .object(let object) = self { object[key] } else { nil }
  }

  var string: String? { if case .string(let value) = self { value } else { nil } }
  var int: Int? { if case .int(let value) = self { value } else { nil } }
  var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
  var keys: Set<String> { if case .object(let object) = self { Set(object.keys) } else { [] } }
}

/// Whether a text is a time in the documented format: RFC 3339, UTC, with milliseconds.
func isTimestamp(_ text: String?) -> Bool {
  text?.wholeMatch(of: /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z/) != nil
}
