/// A place in a text, as editors show it.
package struct TextPosition: Sendable, Equatable {
  /// From 1.
  package private(set) var line: Int
  /// In characters, from 1.
  package private(set) var column: Int

  /// Without arguments: the beginning of the text.
  package init(line: Int = 1, column: Int = 1) {
    self.line = line
    self.column = column
  }

  /// The place after these bytes of UTF-8.
  mutating func advance(over bytes: ArraySlice<UInt8>) {
    for byte in bytes {
      if byte == 0x0A {
        line += 1
        column = 1
      } else if byte & 0xC0 != 0x80 {
        // Characters are counted by their first bytes; those after it are 10xxxxxx.
        column += 1
      }
    }
  }
}

/// A step from an object or a list to what is in it.
package enum JSONStep: Sendable, Hashable {
  /// To the value of the member with this name.
  case key(String)
  /// To the name itself.
  case name(String)
  /// To the element.
  case index(Int)
}

/// A document, and where in its text the names and values stand.
package struct JSONDocument: Sendable {
  /// The document itself.
  package let value: JSONValue
  /// The places of its names and values.
  package let positions: JSONPositions
}

/// Where the names and values of a document stand in its text.
package struct JSONPositions: Sendable {
  private var positions: [[JSONStep]: TextPosition] = [:]
  /// To the value that is being read.
  private var path: [JSONStep] = []
  private var last = (offset: 0, position: TextPosition())

  /// Where the path leads to; for what is not in the document, where it would belong.
  package func position(of path: [JSONStep]) -> TextPosition? {
    var path = path
    while true {
      if let position = positions[path] { return position }
      if path.popLast() == nil { return nil }
    }
  }

  // MARK: While the document is read

  /// What is being read begins here: never before what began last.
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
