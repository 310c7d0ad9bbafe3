import Configuration
import GATT
import JSON

/// Why a peripheral cannot be simulated or served, or what is to set its values cannot be used, and what to do about it.
package struct PeripheralError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What is wrong, with the remedy, for a person.
  package let description: String

  package init(_ description: String) {
    self.description = description
  }
}

/// Values as text, on a line of a terminal or in a column of a CSV file.
extension Property {
  /// The largest payload of a notification at the smallest MTU.
  private static let packet = 20

  /// Reads a value: a word, a text, hexadecimal digits or a picture as it is or as a JSON string, everything else as
  /// JSON.
  package func value(text: String) throws(PeripheralError) -> Value {
    let document = try? JSONParser.parse(Array(text.utf8))
    let json = codec.isPlain && document?.text == nil ? .string(text) : document
    guard let json, let value = codec.value(json) else {
      throw PeripheralError("\(name): \(Excerpt(text)) is not \(codec.valueDescription)")
    }
    _ = try packets(of: value)
    return value
  }

  /// The bytes of a value: one notification, or several for a text that ends with a delimiter.
  package func packets(of value: Value) throws(PeripheralError) -> [[UInt8]] {
    do throws(CodecError) {
      let bytes = try codec.encode(value)
      guard let frame else { return [bytes] }
      let framed = bytes + Array(frame.utf8)
      return stride(from: 0, to: framed.count, by: Self.packet).map {
        Array(framed[$0..<min($0 + Self.packet, framed.count)])
      }
    } catch {
      throw PeripheralError("\(name): \(error.harmless)")
    }
  }

  /// What a central wrote, on one line, in the form that ``value(text:)`` reads; `{"bytes":"0a0b"}` if it is
  /// not a value of the property.
  package func text(of bytes: [UInt8]) -> String {
    guard let value = try? codec.decode(bytes) else {
      return JSONValue.object(["bytes": .string(Hexadecimal.text(bytes))]).written
    }
    let json = codec.json(value)
    if case .string(let text) = json, codec.isPlain, !text.isEmpty, text.utf8.first != UInt8(ascii: "\""),
      text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
    {
      return text
    }
    return json.written
  }
}
