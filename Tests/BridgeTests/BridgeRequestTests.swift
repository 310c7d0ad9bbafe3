import Configuration
import EventLoop
import GATT
import JSON
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

@Suite struct BridgeRequestTests {
  func parse(_ verb: String, _ payload: [UInt8]) -> Result<any GatewayRequest, RequestError> {
    do throws(RequestError) {
      let keys = try RequestHandler.keys(in: payload)
      _ = try Sender.transaction(keys)
      return .success(try RequestTable.request(verb, keys))
    } catch {
      return .failure(error)
    }
  }
  /// Nil if it is refused, or another request.
  func request<R: GatewayRequest>(_ verb: String, _ text: String) -> R? {
    try? parse(verb, Array(text.utf8)).get() as? R
  }
  func rejection(_ verb: String, _ text: String) -> RequestError? { rejection(verb, Array(text.utf8)) }
  func rejection(_ verb: String, _ payload: [UInt8]) -> RequestError? {
    if case .failure(let rejection) = parse(verb, payload) { rejection } else { nil }
  }

  @Test func requestsWithoutKeysAreAccepted() {
    for text in ["", " \n", "{}", #"{"transaction":"a1"}"#] {
      #expect(request("devices", text) == ListDevices())
      #expect(request("health", text) == ReportHealth())
      #expect(request("reload", text) == ReloadConfiguration())
    }
  }

  @Test func everyKeyIsParsed() throws {
    let kitchen = try DeviceID("kitchen")
    let address = try #require(BluetoothAddress("C5:A1:B2:C3:D4:E5"))
    #expect(request("scan", "") == Scan(timeout: 5))
    #expect(request("scan", #"{"timeout":60}"#) == Scan(timeout: 60))
    #expect(
      request("device/add", #"{"identifier":"c5:a1:b2:c3:d4:e5"}"#)
        == AddDevice(identifier: given(address)))
    var added = DeviceOptionsPatch()
    added.options.id = kitchen
    added.options.name = "Küche"
    added.options.profile = "sensortag"
    added.options.properties = ["keys"]
    added.options.period = 5000
    added.options.desired = [Named("x", [.integer(1)])]
    #expect(
      request(
        "device/add",
        #"{"identifier":"C5:A1:B2:C3:D4:E5","id":"kitchen","name":"Küche","period":5000,"profile":"sensortag","#
          + #""properties":["keys"],"desired":{"x":[1]}}"#)
        == AddDevice(identifier: given(address), options: added))
    #expect(request("device/remove", #"{"id":"kitchen"}"#) == RemoveDevice(id: given(kitchen)))
    #expect(request("device/reconnect", #"{"id":"kitchen"}"#) == ReconnectDevice(id: given(kitchen)))
    #expect(
      request("device/rename", #"{"id":"c5a1b2c3d4e5","to":"kitchen"}"#)
        == RenameDevice(id: given(DeviceID(address)), to: kitchen, name: nil))
    #expect(
      request("device/rename", #"{"id":"c5a1b2c3d4e5","name":"Table 1"}"#)
        == RenameDevice(id: given(DeviceID(address)), to: nil, name: "Table 1"))
    let sequence: RunSequence? = request(
      "device/sequence",
      #"{"id":"kitchen","steps":[{"write":{"property":"period","value":1000}},{"read":"temperature"}]}"#)
    #expect(
      sequence?.steps.map(\.step) == [
        SequenceStep("period", .integer(1000)), SequenceStep("temperature"),
      ])
    #expect(sequence?.id == kitchen && sequence?.timeout == 60)
    #expect(
      request("device/sequence", #"{"id":"kitchen","steps":[{"read":"period"}],"timeout":5}"#)
        == RunSequence(id: given(kitchen), steps: [.init(read: given("period"))], timeout: 5))
    #expect(request("adapter/reset", "") == ResetAdapter(adapter: nil))
    #expect(request("adapter/reset", #"{"adapter":"hci1"}"#) == ResetAdapter(adapter: "hci1"))
    #expect(request("adapter/state", "") == ReportAdapter(adapter: nil))
    #expect(request("adapter/state", #"{"adapter":"hci1"}"#) == ReportAdapter(adapter: "hci1"))
    #expect(request("device/identify", #"{"id":"kitchen"}"#) == IdentifyDevice(id: given(kitchen)))
    #expect(request("permit_join", "") == PermitJoining(time: 254, device: nil))
    #expect(
      request("permit_join", #"{"time":0,"device":"c5:a1:b2:c3:d4:e5"}"#)
        == PermitJoining(time: 0, device: BluetoothAddress("C5:A1:B2:C3:D4:E5")))
    #expect(request("record/delete", #"{"name":"a"}"#) == DeleteRecording(name: given("a")))
    #expect(request("number", "") == NumberDevices())
    #expect(
      request("number", #"{"time":0,"prefix":"Table","next":3}"#)
        == NumberDevices(time: 0, prefix: "Table", next: 3))
    #expect(request("number", #"{"prefix":""}"#) == NumberDevices(prefix: ""))
    #expect(request("number", #"{"id":"kitchen"}"#) == NumberDevices(id: kitchen))
    #expect(request("log_level", #"{"level":"debug"}"#) == SetLogLevel(level: given(.debug)))
  }

  @Test func optionIsKeptSetOrReset() throws {
    func patch(_ options: String) throws -> DeviceOptionsPatch {
      let request: ChangeOptions? = request(
        "device/options", "{\"id\":\"kitchen\",\"options\":\(options)}")
      guard let request, request.id == (try DeviceID("kitchen")) else { throw Failure("\(options)") }
      return request.options
    }
    var options = DeviceOptions()
    options.name = "N"
    options.isEnabled = true
    options.gateway = GatewayID("attic")
    var expected = options
    options.merge(try patch("{}"))
    #expect(options == expected)
    options.merge(try patch(#"{"name":null,"area":"Kitchen","enabled":false}"#))
    expected.name = nil
    expected.area = "Kitchen"
    expected.isEnabled = false
    #expect(options == expected)

    let values = try patch(#"{"properties":["temperature"],"period":null,"desired":{"a":80,"mode":null}}"#)
    #expect(values.desired == [Named("a", .integer(80)), Named("mode", .null), Named("period", .null)])
    options.merge(values)
    expected.properties = ["temperature"]
    #expect(options == expected, "desired values are not among them")

    // One by one.
    func adjust(_ patch: DeviceOptionsPatch) -> String {
      options.merge(patch)
      return String(decoding: (options.json["adjust"] ?? .null).bytes, as: UTF8.self)
    }
    #expect(
      try adjust(patch(#"{"adjust":{"temperature":{"unit":"K","offset":-4.5}}}"#))
        == #"{"temperature":{"offset":-4.5,"unit":"K"}}"#)
    let changed = try patch(#"{"adjust":{"temperature":{"unit":null},"bearing":{"offset":2}}}"#)
    #expect(
      String(decoding: (changed.set.json["adjust"] ?? .null).bytes, as: UTF8.self)
        == #"{"temperature":{},"bearing":{"offset":2}}"#)
    #expect(adjust(changed) == #"{"temperature":{"offset":-4.5},"bearing":{"offset":2}}"#)
    #expect(try adjust(patch(#"{"adjust":{"temperature":null}}"#)) == #"{"bearing":{"offset":2}}"#)
    #expect(try adjust(patch(#"{"adjust":null}"#)) == "null")
    // They may be off in config.json.
    for (change, result) in [
      (#"{"soil":{"offset":2}}"#, #"{"soil":{"offset":2}}"#), ("false", "false"), ("{}", "{}"),
      (#"{"soil":{"name":"Soil"}}"#, #"{"soil":{"name":"Soil"}}"#), (#"{"soil":null}"#, "null"),
    ] {
      options.merge(try patch(#"{"values":\#(change)}"#))
      #expect(String(decoding: (options.json["values"] ?? .null).bytes, as: UTF8.self) == result)
    }
  }

  /// The response of a gateway without Bluetooth, and without a broker.
  @LoopActor func response(_ verb: String, _ text: String) async throws -> RequestResponse {
    let (gateway, state) = (GatewayID(hostName: "here"), StateDatabase(path: nil))
    let engine = DeviceManager(Configuration(), gateway: gateway, state: state.section("devices"))
    let bridge = Bridge(Configuration(), gateway: gateway, engine: engine, state: state, spool: nil)
    defer { withExtendedLifetime(bridge) {} }
    let response = Waiter<RequestResponse>()
    bridge.requests.handle(verb, Array(text.utf8)) { response.resume(.success($0)) }
    return try await response.value()
  }

  @Test(
    arguments: [
      ("health", #"{"transaction":"a/1\n"}"#, "a/1\n"), ("health", #"{"transaction":""}"#, ""),
      ("health", "", nil), ("health", #"{"transaction":null}"#, nil),
      ("health", #"{"transaction":23}"#, .integer(23)), ("health", #"{"transaction":false}"#, .bool(false)),
      (
        "devices", #"{"transaction":""# + String(repeating: "x", count: 256) + #""}"#,
        .string(String(repeating: "x", count: 256))
      ),
    ] as [(String, String, JSONValue?)])
  func theTransactionIsKept(_ verb: String, _ text: String, _ transaction: JSONValue?) async throws {
    let response = try await response(verb, text)
    #expect(response.transaction == transaction)
    guard case .success = response.result else { throw Failure("\(response.result)") }
  }
}

private func given<Value>(_ value: Value) -> Required<Value> { Required(projectedValue: value) }
