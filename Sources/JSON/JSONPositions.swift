/// A position in a text, as shown by editors.
package struct TextPosition: Sendable, Equatable {
  /// Counted from 1.
  package internal(set) var line = 1
  /// The column in characters, counted from 1.
  package internal(set) var column = 1

  /// Moves past these bytes of UTF-8.
  mutating func advance(over bytes: ArraySlice<UInt8>) {
    for byte in bytes {
      if byte == 0x0A {
        line += 1
        column = 1
      } else if byte & 0xC0 != 0x80 {
        // Only the first byte of a character counts; following bytes are 10xxxxxx.
        column += 1
      }
    }
  }
}

/// A component of a path in a document.
package enum JSONStep: Sendable, Hashable, ExpressibleByStringLiteral {
  /// The value of the member with this name.
  case key(String)
  /// The name of a member.
  case name(String)
  /// The element with this index.
  case index(Int)

  /// The value of a member.
  package init(stringLiteral key: String) { self = .key(key) }
}

/// A document with the positions of its names and values.
package struct JSONDocument: Sendable {
  /// The document itself.
  package let value: JSONValue
  /// The positions of its names and values.
  package let positions: JSONPositions

  /// The document without the members of these names.
  package func without(_ names: Set<String>) -> JSONDocument {
    guard !names.isEmpty, case .object(let object) = value else { return self }
    return JSONDocument(
      value: .object(JSONObject(object.members.filter { !names.contains($0.name) })), positions: positions)
  }
}

/// The positions of a document's names and values in its text.
package struct JSONPositions: Sendable {
  private var positions: [[JSONStep]: TextPosition] = [:]
  /// The path of the value that is being parsed.
  private var path: [JSONStep] = []
  private var last = (offset: 0, position: TextPosition())

  /// The position of the value or name at `path`; if it is missing, that of the nearest value that contains it.
  package func position(of path: [JSONStep]) -> TextPosition? {
    var path = path
    while true {
      if let position = positions[path] { return position }
      if path.popLast() == nil { return nil }
    }
  }

  // MARK: Parsing

  /// Records the position of the current path. Offsets must not decrease.
  mutating func mark(_ offset: Int, in bytes: [UInt8]) {
    last.position.advance(over: bytes[last.offset..<offset])
    last.offset = offset
    positions[path] = last.position
  }

  mutating func enter(_ step: JSONStep, at offset: Int, in bytes: [UInt8]) {
    path.append(step)
    mark(offset, in: bytes)
  }

  mutating func leave() { path.removeLast() }
}
