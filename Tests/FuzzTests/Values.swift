import EventLoop
import GATT
import JSON
import MQTT
import TestSupport

@testable import Configuration
@testable import Devices
@testable import Peripherals

/// The built-in properties, those of the shipped profiles, and others that these lack: a number as text, bits of a field.
let properties: [Property] = {
  guard let profiles = try? ProfilesDirectory.profiles(in: repositoryPath("deploy/profiles")),
    let text = try? Codec(.scalar(Codec.Scalar(.decimal))),
    let bits = try? Codec(
      .record([
        Codec.Field("flags", .uint8, isHidden: true),
        Codec.Field("low", Codec.Scalar(.uint8, bits: 0..<3), of: "flags"),
        Codec.Field(
          "high", Codec.Scalar(.bool, bits: 7..<8), of: "flags", if: [Codec.Flag(field: "flags", bit: 6)]),
        Codec.Field("name", Codec.Scalar(.utf8, size: 3)),
      ]))
  else { fatalError("deploy/profiles cannot be read") }
  let uuid = BluetoothUUID(short: 0)
  return ([.microbit] + profiles).flatMap(\.properties)
    + [text, bits].map {
      Property(name: "other", service: uuid, characteristic: uuid, access: [.read, .write], codec: $0)
    }
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
  case .scalar(let scalar), .list(of: .scalar(let scalar)): scalar.values.isEmpty && scalar.unknown.isEmpty
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
  case .float32, .float64, .sfloat, .float, .decimal, .bool, .bits: return false
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
  // The first delimiter.
  _ = (pieces.append(Array(delimiter.utf8), at: .now), whole.append(Array(delimiter.utf8), at: .now))
  var (text, frames): ([UInt8], [FrameAssembler.Frame]) = ([], [])
  while !input.isEmpty {
    let piece = input.bytes()
    text += piece
    frames += pieces.append(piece, at: .now)
  }
  expect(frames == whole.append(text, at: .now), "other frames than those of the whole text")
  expect(
    pieces.endAll().map(\.bytes) == whole.endAll().map(\.bytes), "another rest than that of the whole text")
  expect(
    frames.allSatisfy { (1...FrameAssembler.longest).contains($0.bytes.count) },
    "a frame that is too long, or empty")
}

/// The values in a message of a program.
@Sendable func checkMessage(_ bytes: [UInt8]) {
  guard let text = String(validating: bytes, as: UTF8.self) else { return }
  for value in ProgramValue.values(in: bytes).values {
    expect(ValueName(value.name.written) == value.name, "another name: \(value.name)")
    expect(ValueKey(value.name.key.description) == value.name.key, "another key: \(value.name)")
    expect(TopicName("m/d/values/\(value.name.key)/set") != nil, "no topic: \(value.name)")
    expect(
      text.utf8.contains(UInt8(ascii: "{")) || bytes.firstRange(of: value.name.written.utf8) != nil,
      "a name that was not sent: \(value.name)")
    let isFinite = value.value.doubleValue?.isFinite ?? true
    expect(!isFinite || isWritten(Codec.utf8.json(value.value)), "\(value.value) is not written as JSON")
  }
}

/// A message, cut into notifications: with a line end in any way, without one as a micro:bit cuts it.
@Sendable func checkNotifications(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let cuts = input.bytes()
  let message = Array(
    input.remainder().filter { $0 != 0 && $0 != 10 && $0 != 13 }.prefix(FrameAssembler.longest - 1))
  guard !message.isEmpty else { return }
  let values = "\(ProgramValue.values(in: message))"
  var assembler = FrameAssembler(delimiter: "\n")
  var (rest, frames): (ArraySlice<UInt8>, [FrameAssembler.Frame]) = ((message + [10])[...], [])
  for cut in cuts + [255, 255, 255, 255, 255] {
    frames += assembler.append(Array(rest.prefix(Int(cut))), at: .now)
    rest = rest.dropFirst(Int(cut))
  }
  expect(frames.map(\.bytes) == [message], "with a line end: \(frames)")
  assembler = FrameAssembler(delimiter: "\n")
  frames = []
  for start in stride(from: 0, to: message.count, by: FrameAssembler.full) {
    frames += assembler.append(Array(message[start...].prefix(FrameAssembler.full)), at: .now)
  }
  frames += assembler.endAll()
  expect(frames.map { "\(ProgramValue.values(in: $0.bytes))" } == [values], "without a line end: \(frames)")
}
