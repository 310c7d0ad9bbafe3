/// Whether what the other end says first can be a CONNACK.
///
/// libmosquitto ends the process by an assertion when it meets a property that does not exist
/// (`log__printf(NULL, …)` in property_mosq.c of 2.0.11 and 2.0.20), so something that is no broker must not
/// get to it. Pure.
enum ConnackCheck: Equatable {
  /// Go on: libmosquitto may read it.
  case plausible
  /// The CONNACK of a broker that knows 3.1.1 alone to a client of MQTT 5.
  case olderProtocol
  /// It has only begun to arrive.
  case incomplete
  case nonsense(String)

  /// - Parameter bytes: what has arrived, and is still to be read.
  init(_ bytes: [UInt8], _ version: MQTTOptions.ProtocolVersion) {
    var reader = Reader(bytes: bytes[...])
    do throws(Reader.Trouble) {
      guard try reader.byte() == 0x20 else { throw .nonsense("it does not begin with a CONNACK") }
      let length = try reader.variableInteger()
      if length == 2 {
        _ = try reader.byte()
        let code = try reader.byte()
        if version == .v311 {
          self = .plausible
        } else if code == 1 {
          self = .olderProtocol
        } else {
          throw .nonsense("a CONNACK of MQTT 3.1.1")
        }
        return
      }
      guard version == .v5, (3...65536).contains(length) else {
        throw .nonsense("a CONNACK of \(length) bytes")
      }
      var body = Reader(bytes: try reader.bytes(length))
      do throws(Reader.Trouble) {
        _ = try body.bytes(2)
        let properties = try body.variableInteger()
        guard properties == body.bytes.count else { throw .nonsense("a CONNACK with contradictory lengths") }
        while !body.bytes.isEmpty { try body.property() }
      } catch .incomplete {
        throw .nonsense("a CONNACK that is too short for its contents")
      }
      self = .plausible
    } catch {
      switch error {
      case .incomplete: self = .incomplete
      case .nonsense(let reason): self = .nonsense(reason)
      }
    }
  }
}

private struct Reader {
  enum Trouble: Error {
    case incomplete
    case nonsense(String)
  }

  var bytes: ArraySlice<UInt8>

  mutating func byte() throws(Trouble) -> UInt8 {
    guard let byte = bytes.popFirst() else { throw .incomplete }
    return byte
  }

  mutating func bytes(_ count: Int) throws(Trouble) -> ArraySlice<UInt8> {
    guard bytes.count >= count else { throw .incomplete }
    defer { bytes = bytes.dropFirst(count) }
    return bytes.prefix(count)
  }

  /// MQTT 5, 1.5.5: seven bits a byte, the low ones first, four bytes at most.
  mutating func variableInteger() throws(Trouble) -> Int {
    var value = 0
    for shift in [0, 7, 14, 21] {
      let byte = try byte()
      value |= Int(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return value }
    }
    throw .nonsense("a length field of more than four bytes")
  }

  private mutating func skipString() throws(Trouble) {
    let count = Int(try byte()) << 8 | Int(try byte())
    _ = try bytes(count)
  }

  /// One property (MQTT 5, 2.2.2.2), whatever it is.
  mutating func property() throws(Trouble) {
    switch try variableInteger() {
    case 1, 23, 25, 36, 37, 40, 41, 42: _ = try byte()
    case 19, 33, 34, 35: _ = try bytes(2)
    case 2, 17, 24, 39: _ = try bytes(4)
    case 11: _ = try variableInteger()
    case 3, 8, 9, 18, 21, 22, 26, 28, 31: try skipString()
    case 38:
      try skipString()
      try skipString()
    case let other: throw .nonsense("a CONNACK with the unknown property \(other)")
    }
  }
}
