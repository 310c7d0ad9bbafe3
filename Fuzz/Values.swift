import GATT
import JSON

@testable import Configuration
@testable import Devices
@testable import Peripherals

/// The built-in properties, and those of the shipped profiles.
let properties: [Property] = {
  guard let profiles = try? ProfilesDirectory.profiles(in: "deploy/profiles") else {
    fatalError("to be run in the root of the repository")
  }
  return ([.microbit] + profiles).flatMap(\.properties)
}()

/// A property, and a value that a peripheral has sent.
@Sendable func checkValue(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let property = input.choice(properties)
  check(input.remainder(), of: property)
}

func check(_ bytes: [UInt8], of property: Property) {
  let codec = property.codec
  let value: Value
  do throws(CodecError) {
    value = try codec.decode(bytes)
  } catch {
    expect(!"\(error)".isEmpty, "an error without a text")
    return
  }
  expect(isWritten(codec.json(value)), "\(value) is not written as JSON")
  let encoded: [UInt8]
  do throws(CodecError) {
    encoded = try codec.encode(value)
  } catch {
    // A number without a word, a bit without a name, and more bytes than a characteristic has.
    return expect(!isAlwaysEncoded(codec) || bytes.count > Codec.longestValue, "\(value): \(error)")
  }
  expect(!isExact(codec) || encoded == bytes, "\(value): encoded as \(encoded)")
  guard let again = try? codec.decode(encoded) else { fatalError("\(value): encoded as \(encoded)") }
  // Compared as text, because NaN is not equal to itself.
  expect("\(again)" == "\(value)", "\(value): encoded and decoded as \(again)")
  expect((try? codec.encode(again)) == encoded, "\(value): encoded in two ways")

  let line = property.text(of: bytes)
  expect(!line.utf8.contains(UInt8(ascii: "\n")), "\(line): more than one line")
  checkSet(property, codec.json(value))
}

/// Whether each decoded value can be encoded.
private func isAlwaysEncoded(_ codec: Codec) -> Bool {
  switch codec.description {
  case .scalar(let scalar), .list(of: .scalar(let scalar)): scalar.values.isEmpty
  case .record, .flags, .list, .advertised: false
  }
}

/// Whether different bytes are different values.
private func isExact(_ codec: Codec) -> Bool {
  guard case .scalar(let scalar) = codec.description, scalar.scale == nil, scalar.offset == nil else {
    return false
  }
  switch scalar.type {
  case .uint8, .uint16, .uint24, .uint32, .uint64, .int8, .int16, .sint24, .int32, .int64, .utf8, .bytes:
    return true
  case .float32, .float64, .sfloat, .float, .bool, .bits: return false
  }
}

/// Sets a property by JSON from a command, a request or a file.
func checkSet(_ property: Property, _ json: JSONValue) {
  let encoded: EncodedValue
  do throws(RequestError) {
    encoded = try property.value(ofCommand: json)
  } catch {
    expectVisible(error.reason)
    return
  }
  expect(property.isWritable, "\(property.name) is written")
  expect(encoded.bytes.count <= Codec.longestValue, "\(encoded.bytes.count) bytes")
  guard let decoded = try? property.codec.decode(encoded.bytes) else {
    fatalError("\(encoded.value): encoded as \(encoded.bytes)")
  }
  expect(isWritten(property.codec.json(decoded)), "\(decoded) is not written as JSON")
}

/// The pieces of a text with a delimiter, each as long as its first byte says.
@Sendable func checkFrames(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let delimiter = input.choice(["\n", "\r\n", "#", "ab", "aab"])
  var (pieces, whole) = (FrameAssembler(delimiter: delimiter), FrameAssembler(delimiter: delimiter))
  var (text, frames): ([UInt8], [[UInt8]]) = ([], [])
  while !input.isEmpty {
    let piece = input.bytes()
    text += piece
    frames += pieces.append(piece)
  }
  expect(frames == whole.append(text), "other frames than those of the whole text")
  expect(pieces.flush() == whole.flush(), "another rest than that of the whole text")
  expect(frames.allSatisfy { $0.count <= FrameAssembler.longest }, "a frame that is too long")
}
