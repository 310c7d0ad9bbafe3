/// Whether the first bytes received are a valid CONNACK.
///
/// libmosquitto aborts the process on an unknown property (`log__printf(NULL, …)` in property_mosq.c of 2.0.11 and
/// 2.0.20), so it must not read the answer of a server that is not a broker. Pure.
///
/// Where bytes are missing or wrong, the result is thrown.
enum ConnackCheck: Error, Equatable {
  /// libmosquitto may read it.
  case valid
  /// The CONNACK to an MQTT 5 client of a broker that only supports 3.1.1.
  case olderProtocol
  /// The CONNACK has not been received completely.
  case incomplete
  case invalid(String)

  /// The most bytes of a CONNACK: its type, at most three of its length, and the rest.
  static let mostBytes = 4 + longest
  private static let longest = 65536

  /// - Parameter bytes: received, but not read yet.
  init(_ bytes: [UInt8], _ version: MQTTOptions.ProtocolVersion) {
    var reader = Reader(bytes: bytes[...])
    do throws(ConnackCheck) {
      guard try reader.byte() == 0x20 else { throw .invalid("it does not begin with a CONNACK") }
      let length = try reader.variableInteger()
      if length == 2 {
        _ = try reader.byte()
        let code = try reader.byte()
        if version == .v311 {
          self = .valid
        } else if code == 1 {
          self = .olderProtocol
        } else {
          throw .invalid("a CONNACK of MQTT 3.1.1")
        }
        return
      }
      guard version == .v5, (3...Self.longest).contains(length) else {
        throw .invalid("a CONNACK of \(length) bytes")
      }
      var body = Reader(bytes: try reader.bytes(length))
      do throws(ConnackCheck) {
        _ = try body.bytes(2)
        let properties = try body.variableInteger()
        guard properties == body.bytes.count else { throw .invalid("a CONNACK with contradictory lengths") }
        while !body.bytes.isEmpty { try body.property() }
      } catch .incomplete {
        throw .invalid("a CONNACK that is too short for its contents")
      }
      self = .valid
    } catch {
      self = error
    }
  }
}

private struct Reader {
  var bytes: ArraySlice<UInt8>

  mutating func byte() throws(ConnackCheck) -> UInt8 {
    guard let byte = bytes.popFirst() else { throw .incomplete }
    return byte
  }

  mutating func bytes(_ count: Int) throws(ConnackCheck) -> ArraySlice<UInt8> {
    guard bytes.count >= count else { throw .incomplete }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }

  /// MQTT 5, 1.5.5: seven bits per byte, the low ones first, at most four bytes.
  mutating func variableInteger() throws(ConnackCheck) -> Int {
    var value = 0
    for shift in [0, 7, 14, 21] {
      let byte = try byte()
      value |= Int(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return value }
    }
    throw .invalid("a length field of more than four bytes")
  }

  private mutating func skipString() throws(ConnackCheck) {
    let count = Int(try byte()) << 8 | Int(try byte())
    _ = try bytes(count)
  }

  /// Skips a property (MQTT 5, 2.2.2.2).
  mutating func property() throws(ConnackCheck) {
    switch try variableInteger() {
    case 1, 23, 25, 36, 37, 40, 41, 42: _ = try byte()
    case 19, 33, 34, 35: _ = try bytes(2)
    case 2, 17, 24, 39: _ = try bytes(4)
    case 11: _ = try variableInteger()
    case 3, 8, 9, 18, 21, 22, 26, 28, 31: try skipString()
    case 38:
      try skipString()
      try skipString()
    case let other: throw .invalid("a CONNACK with the unknown property \(other)")
    }
  }
}
