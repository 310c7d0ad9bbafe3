import TestSupport
import Testing

@testable import Bridge
@testable import Devices

/// Requests that are refused, each with its reason.
extension BridgeRequestTests {
  private static let refused: [(verb: String, text: String, reason: String)] = [
    // Unknown requests.
    ("devics", "", #"unknown request "devics": did you mean devices?"#),
    ("device/ad", "", #"unknown request "device/ad": did you mean device/add?"#),
    (
      "make-coffee-for-all", "",
      #"unknown request "make-coffee-for-all": known requests: devices, health, reload, scan, device/add, "#
        + "device/remove, device/reconnect, device/rename, device/pair, device/unpair, device/options, "
        + "device/inspect, device/identify, property/get, property/set, value/remove, adapter/state, "
        + "device/sequence, adapter/reset, log_level, permit_join, number, record/start, record/stop, record/list, "
        + "record/delete, device/log"
    ),
    (
      "number", #"{"prefix":"\#(String(repeating: "x", count: 101))"}"#,
      "prefix: must not be longer than 100 characters"
    ),
    // No JSON object.
    ("health", "PRESS", #"the payload is not valid JSON: line 1, column 1: expected a value, found "P""#),
    (
      "health", "{",
      "the payload is not valid JSON: line 1, column 2: expected a key in double quotes, found the end"
    ),
    ("health", "[]", "the payload is a list, not an object"),
    ("health", "null", "the payload is null, not an object"),
    ("device/remove", "\"kitchen\"", "the payload is a string, not an object"),
    (
      "device/remove", #"{"id":"a","id":"b"}"#,
      #"the payload is not valid JSON: line 1, column 11: duplicate key "id""#
    ),
    // Unknown keys.
    ("health", #"{"x":1}"#, "x: unknown key (known keys: transaction)"),
    ("health", #"{"transacton":"a"}"#, "transacton: unknown key (did you mean transaction?)"),
    ("scan", #"{"time":5}"#, "time: unknown key (did you mean timeout?)"),
    (
      "device/add", #"{"identifer":"x"}"#,
      "identifer: unknown key (did you mean identifier?); identifier: this is missing (the Bluetooth address, like C5:A1:B2:C3:D4:E5)"
    ),
    (
      "device/add", #"{"zzzzzzzzz":1}"#,
      "zzzzzzzzz: unknown key (known keys: identifier, id, name, area, profile, properties, exclude, values, adjust, desired, period, enabled, gateway, connect, every, log, transaction); "
        + "identifier: this is missing (the Bluetooth address, like C5:A1:B2:C3:D4:E5)"
    ),
    (
      "device/options", #"{"id":"a","options":{"nmae":"x"}}"#,
      "options.nmae: unknown key (did you mean name?)"
    ),
    (
      "device/options", #"{"id":"a","options":{"id":"b"}}"#,
      "options.id: unknown key (use the request device/rename)"
    ),
    (
      "device/options", #"{"id":"a","options":{"match":{}}}"#,
      "options.match: unknown key (it can only be changed in config.json)"
    ),
    (
      "device/options", #"{"id":"a","name":"x"}"#,
      "name: unknown key (known keys: id, options, transaction); options: this is missing (an object of name, area, "
        + "properties, exclude, values, adjust, desired, period, enabled, gateway, connect, every, log)"
    ),
    // Missing keys.
    ("device/add", "", "identifier: this is missing (the Bluetooth address, like C5:A1:B2:C3:D4:E5)"),
    ("device/remove", "{}", "id: this is missing (the device's id, as in its topics)"),
    ("device/reconnect", "", "id: this is missing (the device's id, as in its topics)"),
    ("device/rename", #"{"id":"a"}"#, "to: this is missing (the new id; or name, which it follows from)"),
    (
      "device/rename", "",
      "id: this is missing (the device's id, as in its topics)"
    ),
    (
      "device/options", #"{"id":"a"}"#,
      "options: this is missing (an object of name, area, properties, exclude, values, adjust, desired, period, enabled, gateway, connect, every, log)"
    ),
    ("log_level", "", "level: this is missing (debug, info, notice, warning, error)"),
    // Wrong types and impossible values.
    ("scan", #"{"timeout":0}"#, "timeout: 0 is below 1"),
    ("scan", #"{"timeout":61}"#, "timeout: 61 is above 60"),
    ("scan", #"{"timeout":1.5}"#, "timeout: 1.5 is not a whole number, 1…60"),
    ("scan", #"{"timeout":"5"}"#, "timeout: expected a number, found a string (write it without quotes)"),
    ("scan", #"{"timeout":null}"#, "timeout: expected a whole number, 1…60, found null"),
    (
      "device/add", #"{"identifier":"C5:A1"}"#,
      #"identifier: "C5:A1" is not a Bluetooth address (example: C5:A1:B2:C3:D4:E5)"#
    ),
    ("device/add", #"{"identifier":7}"#, "identifier: expected a string, found a number"),
    ("device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","period":0}"#, "period: 0 is below 20"),
    (
      "device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","id":"all"}"#,
      #"id: "all" is reserved: choose another id"#
    ),
    (
      "device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","name":""}"#,
      "name: must not be empty (leave the key out instead)"
    ),
    (
      "device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","name":"\u001b[2J"}"#,
      #"name: "·[2J" contains a control character"#
    ),
    ("device/rename", #"{"id":"a","to":"bridge"}"#, #"to: "bridge" is reserved: choose another id"#),
    (
      "device/rename", #"{"id":"a","to":"a/b"}"#,
      #"to: "a/b" is not a valid id (try a-b)"#
    ),
    (
      "device/rename", ##"{"id":"a","to":"#"}"##,
      ##"to: "#" is not a valid id (allowed are letters in lower case, digits, - and _)"##
    ),
    ("device/rename", #"{"id":"a","to":""}"#, "to: must not be empty (leave the key out instead)"),
    ("device/rename", #"{"id":null,"to":"b"}"#, "id: expected a string, found null"),
    ("device/options", #"{"id":"a","options":[]}"#, "options: expected an object, found a list"),
    ("device/options", #"{"id":"a","options":null}"#, "options: expected an object, found null"),
    ("device/options", #"{"id":"a","options":{"period":65536}}"#, "options.period: 65536 is above 65535"),
    ("device/options", #"{"id":"a","options":{"period":19}}"#, "options.period: 19 is below 20"),
    (
      "device/options", #"{"id":"a","options":{"period":null,"desired":{"period":20}}}"#,
      "options.period: period and desired.period must not be combined (give one of them)"
    ),
    (
      "device/add", #"{"identifier":"C5:A1:B2:C3:D4:E5","period":20,"desired":{"period":20}}"#,
      "period: period and desired.period must not be combined (give one of them)"
    ),
    (
      "device/options", #"{"id":"a","options":{"properties":7}}"#,
      "options.properties: expected a string, found a number"
    ),
    (
      "device/options", #"{"id":"a","options":{"desired":null}}"#,
      "options.desired: expected an object, found null"
    ),
    (
      "device/options", #"{"id":"a","options":{"profile":"x"}}"#,
      "options.profile: unknown key (change it in config.json, or with device/remove and device/add)"
    ),
    (
      "device/options", #"{"id":"a","options":{"enabled":"no"}}"#,
      "options.enabled: expected true or false, found a string"
    ),
    (
      "device/options", #"{"id":"a","options":{"gateway":"A B"}}"#,
      #"options.gateway: "A B" is not a valid id (try a-b)"#
    ),
    ("device/options", #"{"id":"a","options":{"every":86401}}"#, "options.every: 86401 is above 86400"),
    (
      "device/options", #"{"id":"a","options":{"connect":true}}"#,
      #"options.connect: expected "always" or "on_demand", found true"#
    ),
    // Sequences.
    (
      "device/sequence", #"{"id":"a"}"#,
      #"steps: this is missing (a list like [{"read":"temperature"}])"#
    ),
    (
      "device/sequence", #"{"steps":[{"read":"x"}]}"#,
      "id: this is missing (the device's id, as in its topics)"
    ),
    ("device/sequence", #"{"id":"a","steps":{}}"#, "steps: expected a list, found an object"),
    ("device/sequence", #"{"id":"a","steps":[{}]}"#, "steps[0]: a step has one key: write or read"),
    (
      "device/sequence",
      #"{"id":"a","steps":[{"read":"x"},{"read":"x","write":{"property":"y","value":1}}]}"#,
      "steps[1]: a step has one key: write or read"
    ),
    (
      "device/sequence", #"{"id":"a","steps":[{"write":{"property":"y"}}]}"#,
      "steps[0].write.value: this is missing"
    ),
    (
      "device/sequence", #"{"id":"a","steps":[{"write":{"value":1}}]}"#,
      "steps[0].write.property: this is missing"
    ),
    (
      "device/sequence", #"{"id":"a","steps":[{"wait":1}]}"#,
      "steps[0].wait: unknown key (did you mean write?)"
    ),
    (
      "device/sequence", #"{"id":"a","steps":[{"read":"x"}],"timeout":301}"#, "timeout: 301 is above 300"
    ),
    ("adapter/reset", #"{"adapter":"eth0"}"#, #"adapter: "eth0" is not an adapter (example: hci0)"#),
    (
      "log_level", #"{"level":"loud"}"#,
      #"level: expected "debug" or "info" or "notice" or "warning" or "error", found "loud""#
    ),
    // Transactions.
    ("health", #"{"transaction":[7]}"#, "the transaction is not a text, a number or a boolean"),
  ]

  @Test(arguments: refused)
  func invalidRequestIsRejectedWithAReason(verb: String, text: String, reason: String) {
    #expect(rejection(verb, text) == RequestError(.invalid, reason))
  }

  @Test(arguments: [
    ("devics", #"{"transaction":"a1"}"#), ("scan", #"{"timeout":0,"transaction":"a1"}"#),
    ("health", #"{"x":1,"transaction":"a1"}"#), ("device/add", #"{"transaction":"a1"}"#),
  ])
  func aRejectionKeepsTheTransaction(_ verb: String, _ text: String) async throws {
    let response = try await response(verb, text)
    #expect(response.transaction == "a1")
    guard case .failure(let error) = response.result, error.code == .invalid else { throw Failure(verb) }
  }

  @Test func tooLongTransactionIsNotReturned() async throws {
    let long = String(repeating: "x", count: 257)
    let response = try await response("health", "{\"transaction\":\"\(long)\"}")
    #expect(response.transaction == nil)
    #expect(response.result == .failure(RequestError(.invalid, "the transaction is longer than 256 bytes")))
  }

  @Test func oversizedPayloadIsRejectedBeforeParsing() {
    let million = [UInt8](repeating: UInt8(ascii: " "), count: 1 << 20)
    for verb in ["health", "nonsense"] {
      #expect(
        rejection(verb, million) == RequestError(.invalid, "the payload has more than 65536 bytes"))
    }
    let most = [UInt8](repeating: UInt8(ascii: " "), count: (64 << 10) - 2) + Array("{}".utf8)
    #expect((try? parse("health", most).get()) is ReportHealth)
  }

  @Test func numberOfStepsIsLimited() {
    let steps = Array(repeating: #"{"read":"x"}"#, count: 33).joined(separator: ",")
    #expect(
      rejection("device/sequence", "{\"id\":\"a\",\"steps\":[\(steps)]}")
        == RequestError(.invalid, "steps: 33 steps, the maximum is 32"))
  }

  @Test func manyErrorsGiveAShortReason() throws {
    let keys = (0..<5000).map { "\"key\($0)\":1" }.joined(separator: ",")
    let rejection = try #require(self.rejection("device/add", "{\(keys)}"))
    #expect(rejection.reason.hasPrefix("key0: unknown key (known keys: "))
    #expect(rejection.reason.hasSuffix("; and 4996 more"))
    #expect(rejection.reason.utf8.count < 1000)
  }

  @Test(arguments: [[0xFF], [0x7B, 0xFF, 0x7D], Array(repeating: 0x5B, count: 60_000), [0]] as [[UInt8]])
  func invalidBytesAreRejected(payload: [UInt8]) {
    for verb in RequestTable.all.map({ $0.verb }) {
      guard case .failure(let rejection) = parse(verb, payload) else {
        Issue.record("\(verb) accepted it")
        continue
      }
      #expect(rejection.reason.hasPrefix("the payload is not valid JSON: "))
    }
  }

  @Test func reasonsContainNoControlCharacters() {
    for text in [
      "\u{1B}[2J", "{\"\\u001b\":1}", "{\"id\":\"\\u001b[2J\"}", "{\"id\":\"a\",\"to\":\"\\u202e\"}",
    ] {
      let reason = rejection("device/rename", text)?.reason
      #expect(reason?.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E } == false)
    }
  }
}
