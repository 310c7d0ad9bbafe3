/// The bytes of an input, taken one after the other. At the end they are zeros.
struct Input {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isEmpty: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func number() -> UInt64 {
    let width = byte() % 9
    return (0..<width).reduce(0) { number, _ in number << 8 | UInt64(byte()) }
  }

  mutating func choice<Element>(_ elements: [Element]) -> Element { elements[Int(byte()) % elements.count] }

  /// As many as the first byte says.
  mutating func bytes() -> [UInt8] {
    let count = min(Int(byte()), rest.count)
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func text() -> String { String(decoding: bytes(), as: UTF8.self) }

  mutating func remainder() -> [UInt8] {
    defer { rest = [] }
    return Array(rest)
  }

  /// The bytes up to `end`, or to the end of the input.
  mutating func bytes(upTo end: UInt8) -> [UInt8] {
    let bytes = rest.prefix { $0 != end }
    rest = rest.dropFirst(bytes.count + 1)
    return Array(bytes)
  }
}
