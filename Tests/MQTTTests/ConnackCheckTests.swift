import Testing

@testable import MQTT

@Suite struct ConnackCheckTests {
  @Test(
    arguments: [
      [0x20, 0x03, 0x00, 0x87, 0x00],
      // mosquitto's: Topic Alias Maximum, Receive Maximum.
      [0x20, 0x09, 0x00, 0x00, 0x06, 0x22, 0x00, 0x0A, 0x21, 0x00, 0x14],
      // A client id, a user property, a byte, a reason; followed by the next packet.
      [0x20, 0x12, 0, 0, 0x0F, 18, 0, 1, 97, 38, 0, 0, 0, 1, 98, 37, 1, 31, 0, 0, 0xD0, 0x00],
    ] as [[UInt8]])
  func validAnswersOfMQTT5AreAccepted(_ bytes: [UInt8]) {
    #expect(ConnackCheck(bytes, .v5) == .valid)
    let whole = 2 + Int(bytes[1])
    for count in 0..<whole { #expect(ConnackCheck(Array(bytes[..<count]), .v5) == .incomplete) }
    guard case .invalid = ConnackCheck(bytes, .v311) else {
      Issue.record("3.1.1 has no properties")
      return
    }
  }

  @Test func answersOfMQTT311AreRecognised() {
    for code: UInt8 in 0...5 {
      #expect(ConnackCheck([0x20, 0x02, 0x00, code], .v311) == .valid)
      #expect(ConnackCheck([0x20, 0x02, 0x00, code], .v5) != .valid)
    }
    #expect(ConnackCheck([0x20, 0x02, 0x00, 0x01], .v5) == .olderProtocol)
    #expect(ConnackCheck([0x20, 0x02, 0x00], .v311) == .incomplete)
  }

  @Test(
    arguments: [
      Array("HTTP/1.1 400".utf8), [0x30, 0x00], [0x20, 0x01, 0x00], [0x20, 0x00],
      [0x20, 0x80, 0x80, 0x80, 0x80, 0x01], [0x20, 0xFF, 0xFF, 0x7F],
      [0x20, 0x05, 0x00, 0x00, 0x02, 0x77, 0x01], [0x20, 0x04, 0x00, 0x00, 0x00, 0x00],
      [0x20, 0x05, 0x00, 0x00, 0x02, 18, 0xFF], [0x20, 0x04, 0x00, 0x00, 0x01, 33],
    ] as [[UInt8]])
  func invalidAnswersAreRefused(_ bytes: [UInt8]) {
    if case .invalid = ConnackCheck(bytes, .v5) { return }
    Issue.record("accepted as a CONNACK")
  }
}
