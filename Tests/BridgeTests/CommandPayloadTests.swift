import GATT
import JSON
import Testing

@testable import Bridge

@Suite struct CommandPayloadTests {
  func parse(_ payload: [UInt8]) -> Result<ParsedCommand, Rejection> {
    ParsedCommand.parse(payload, for: .microbitPeriod)
  }
  func accepted(_ text: String) -> ParsedCommand? { try? parse(Array(text.utf8)).get() }
  func rejection(_ payload: [UInt8]) -> Rejection? {
    if case .failure(let rejection) = parse(payload) { rejection } else { nil }
  }

  @Test(arguments: [
    ("2000", 2000), ("20", 20), ("65535", 65535), ("2000\n", 2000), (" \t2000\r\n", 2000),
    (#""2000""#, 2000), (#"{"value":2000}"#, 2000), (#"{"value":"2000"}"#, 2000),
    ("{ \"value\" : 65535 }\n", 65535), ("2000.0", 2000), ("2e3\n", 2000), (#"{"value":2000.0}"#, 2000),
  ])
  func numbersAreAccepted(text: String, value: Int) {
    #expect(accepted(text)?.value == .integer(value))
    #expect(accepted(text)?.transaction == nil)
  }

  @Test func transactionIsAccepted() {
    #expect(accepted(#"{"value":2000,"transaction":"a1"}"#)?.transaction == "a1")
    #expect(accepted(#"{"transaction":"","value":2000}"#)?.transaction == "")
    #expect(accepted(#"{"transaction":"/+#\n\u0000","value":2000}"#)?.transaction == "/+#\n\0")
    #expect(accepted(#"{"value":2000,"transaction":null}"#)?.transaction == nil)
  }

  /// As in the examples of Zigbee2MQTT.
  @Test(arguments: ["23", "-1", "9223372036854775807", "2.5", "true", "false", #""23""#])
  func transactionOfAnyKindIsReturnedAsItWasSent(transaction: String) {
    let member = #""transaction":\#(transaction)"#
    #expect(accepted("{\"value\":2000,\(member)}")?.transaction?.written == transaction)
    #expect(rejection(Array("{\"value\":0,\(member)}".utf8))?.transaction?.written == transaction)
  }

  @Test func ttlIsAccepted() {
    #expect(accepted("2000")?.ttl == nil)
    #expect(accepted(#"{"value":2000}"#)?.ttl == nil)
    #expect(accepted(#"{"value":2000,"ttl":1}"#)?.ttl == 1)
    #expect(accepted(#"{"value":2000,"ttl":60.0}"#)?.ttl == 60)
    #expect(accepted(#"{"ttl":86400,"value":2000,"transaction":"a1"}"#)?.ttl == 86400)
  }

  @Test(arguments: ["0", "-1", "86401", "1.5", "null", "true", "[]", "99999999999999999999"])
  func invalidTTLIsRejected(ttl: String) {
    let rejection = rejection(Array("{\"value\":20,\"transaction\":\"a1\",\"ttl\":\(ttl)}".utf8))
    #expect(rejection?.reason.hasPrefix("ttl: ") == true)
    #expect(rejection?.reason.hasSuffix(" is not a whole number of seconds, 1…86400") == true)
    #expect(rejection?.transaction == "a1")
  }

  @Test func aNumberInQuotesIsNoTTL() {
    #expect(
      rejection(Array(#"{"value":20,"ttl":"60"}"#.utf8))?.reason
        == #"ttl: "60" is a string, not a whole number of seconds, 1…86400"#)
  }

  @Test(arguments: [
    ("", "the payload is empty"),
    (" \n", "the payload is empty"),
    ("abc", #""abc" is not a whole number in plain digits"#),
    ("19", "19 is below the smallest period, 20 ms"),
    ("99999999999999999999", "1e+20 is above the largest period, 65535 ms"),
    ("1e400", #""1e400" is not a whole number in plain digits"#),
    ("1e-400", #""1e-400" is not a whole number in plain digits"#),
    ("2.505e1", #""2.505e1" is not a whole number in plain digits"#),
    ("19.0", "19 is below the smallest period, 20 ms"),
    ("9007199254740993.0", #""9007199254740993.0" is not a whole number in plain digits"#),
    ("100.5", #""100.5" is not a whole number in plain digits"#),
    ("0x10", #""0x10" is not a whole number in plain digits"#),
    ("+1", #""+1" is not a whole number in plain digits"#),
    ("007", #""007" is not a whole number in plain digits"#),
    ("2 000", #""2 000" is not a whole number in plain digits"#),
    ("٢", #""٢" is not a whole number in plain digits"#),
    ("true", #""true" is not a whole number in plain digits"#),
    ("null", #""null" is not a whole number in plain digits"#),
    ("[2000]", #""[2000]" is not a whole number in plain digits"#),
    ("2000\0", #""2000·" is not a whole number in plain digits"#),
    ("{}", "the key value is missing"),
    (#"{"value":100.5}"#, #""100.5" is not a whole number in plain digits"#),
    (#"{"value":null}"#, #""null" is not a whole number in plain digits"#),
    (#"{"value":{"value":1}}"#, #""{"value":1}" is not a whole number in plain digits"#),
    (#"{"value":20,"transaction":[7]}"#, "the transaction is not a text, a number or a boolean"),
    (#"{"value":20,"transaction":{}}"#, "the transaction is not a text, a number or a boolean"),
    (
      #"{"value":1,"value":2}"#,
      #"the payload is not a JSON object: line 1, column 12: duplicate key "value""#
    ),
    (
      #"{"value":1"#,
      "the payload is not a JSON object: line 1, column 11: expected a comma or }, found the end"
    ),
  ])
  func invalidPayloadIsRejectedWithAReason(text: String, reason: String) {
    #expect(rejection(Array(text.utf8))?.reason == reason)
    #expect(rejection(Array(text.utf8))?.transaction == nil)
  }

  @Test func aRejectionKeepsTheTransaction() {
    #expect(
      rejection(Array(#"{"value":0,"transaction":"a1"}"#.utf8))
        == Rejection("0 is below the smallest period, 20 ms", "a1"))
    #expect(
      rejection(Array(#"{"valeu":1,"transaction":"a1"}"#.utf8))
        == Rejection(#"unknown key "valeu"; allowed: value, ttl, transaction (did you mean value?)"#, "a1"))
    #expect(rejection(Array(#"{"transaction":"a1"}"#.utf8)) == Rejection("the key value is missing", "a1"))
  }

  @Test func oversizedPayloadIsRejectedBeforeParsing() {
    let million = [UInt8](repeating: UInt8(ascii: "9"), count: 1 << 20)
    #expect(rejection(million) == Rejection("the payload has more than 4096 bytes"))
    let digits = [UInt8](repeating: UInt8(ascii: "9"), count: 4000)
    #expect(rejection(digits)?.reason.utf8.count ?? .max < 120)
    #expect(accepted(String(repeating: " ", count: 4094) + "77")?.value == 77)
  }

  @Test(arguments: [257, 1000, 4000, 10_000])
  func tooLongTransactionIsNotReturned(count: Int) {
    let transaction = String(repeating: "x", count: count)
    let rejection = rejection(Array("{\"value\":20,\"transaction\":\"\(transaction)\"}".utf8))
    #expect(rejection != nil && rejection?.transaction == nil)
    #expect(rejection?.reason.utf8.count ?? .max < 120)
    let longest = String(repeating: "x", count: 256)
    #expect(accepted("{\"value\":20,\"transaction\":\"\(longest)\"}")?.transaction == .string(longest))
  }

  @Test(arguments: [[0xFF], [0x31, 0xC3], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x7B, 0xFF, 0x7D]])
  func invalidUTF8IsRejected(payload: [UInt8]) {
    #expect(rejection(payload)?.transaction == nil)
    #expect(rejection(payload)?.reason.isEmpty == false)
  }

  @Test func deepNestingIsRejected() {
    let nested = "{\"value\":" + String(repeating: "[", count: 2000)
    #expect(rejection(Array(nested.utf8))?.reason.contains("nest deeper") == true)
  }

  @Test func reasonsContainNoControlCharacters() {
    for text in ["\u{1B}[2J", "{\"\u{1B}\":1}", "{\"\\u001b[2J\":1}", "{\"value\":\"\\u001b\"}"] {
      let reason = rejection(Array(text.utf8))?.reason
      #expect(reason?.unicodeScalars.contains { $0.value < 0x20 } == false)
    }
  }
}
