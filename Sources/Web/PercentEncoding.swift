import GATT

/// Text in addresses of the page, as browsers encode it: `%EC%98%A8` for `온`.
enum PercentEncoding {
  /// What is not encoded stays as it is.
  static func decode(_ text: some StringProtocol) -> String {
    var (bytes, rest) = ([UInt8](), text.utf8[...])
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count > 1,
        let decoded = Hexadecimal.bytes(String(decoding: rest.prefix(2), as: UTF8.self))
      {
        bytes += decoded
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Encodes every byte of the text.
  static func encode(_ text: String) -> String {
    text.utf8.map { "%" + Hexadecimal.text([$0]) }.joined()
  }
}
