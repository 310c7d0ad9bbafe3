import Configuration
import Devices
import EventLoop
import JSON
import Log
import Recording

/// Parses, carries out and answers requests to the gateway, from any transport.
@LoopActor package final class RequestHandler {
  private unowned let host: any RequestHost
  private let log = Logger(component: "gateway")

  /// - Parameter host: must outlive the handler.
  package init(host: any RequestHost) { self.host = host }

  /// - Parameters:
  ///   - verb: `devices`, `device/add` …
  ///   - payload: the request's keys as a JSON object, or nothing.
  ///   - respond: called once.
  package func handle(
    _ verb: String, _ payload: [UInt8], respond: @escaping @LoopActor (RequestResponse) -> Void
  ) {
    do throws(RequestError) {
      handle(verb, try Self.keys(in: payload), respond: respond)
    } catch {
      makeCall(verb, nil, respond).reply(.failure(error))
    }
  }

  /// Handles a request whose keys the transport has parsed.
  package func handle(
    _ verb: String, _ keys: JSONObject, respond: @escaping @LoopActor (RequestResponse) -> Void
  ) {
    perform(verb, keys, respond) { call throws(RequestError) in
      let request = try RequestTable.request(verb, keys)
      log.debug("request", ["verb": verb])
      try request.perform(call)
    }
  }

  /// Reads and answers a request that only one transport has.
  package func handleOwn<Keys: RequestKeys>(
    _ verb: String, _ keys: JSONObject, as type: Keys.Type,
    respond: @escaping @LoopActor (RequestResponse) -> Void, _ body: (Keys) -> Result<JSONValue, RequestError>
  ) {
    perform(verb, keys, respond) { call throws(RequestError) in call.reply(body(try Keys(keys))) }
  }

  private func perform(
    _ verb: String, _ keys: JSONObject, _ respond: @escaping @LoopActor (RequestResponse) -> Void,
    _ body: (RequestCall) throws(RequestError) -> Void
  ) {
    var call = makeCall(verb, nil, respond)
    do throws(RequestError) {
      call = makeCall(verb, try Sender.transaction(keys), respond)
      try body(call)
    } catch {
      call.reply(.failure(error))
    }
  }

  private func makeCall(
    _ verb: String, _ transaction: JSONValue?, _ respond: @escaping @LoopActor (RequestResponse) -> Void
  ) -> RequestCall {
    RequestCall(engine: host.engine, host: host) { [log] result in
      if case .failure(let error) = result { log.info("request refused: \(error.reason)", ["verb": verb]) }
      respond(RequestResponse(result: result, transaction: transaction))
    }
  }

  /// No payload at all is an object without members.
  nonisolated static func keys(in payload: [UInt8]) throws(RequestError) -> JSONObject {
    let isBlank = payload.allSatisfy { $0 == 0x20 || (0x09...0x0D).contains($0) }
    if isBlank, payload.count <= TopicMap.longestPayload { return JSONObject([]) }
    return try object(in: payload, called: "payload")
  }

  /// - Parameter name: what the text is called in the reason of a refusal.
  package nonisolated static func object(
    in text: [UInt8], called name: String
  ) throws(RequestError) -> JSONObject {
    guard text.count <= TopicMap.longestPayload else {
      throw RequestError(.invalid, "the payload has more than \(TopicMap.longestPayload) bytes")
    }
    let document: JSONValue
    do throws(JSONSyntaxError) {
      document = try JSONParser.parse(text)
    } catch {
      throw RequestError(.invalid, "the \(name) is not valid JSON: \(error)")
    }
    guard case .object(let object) = document else {
      throw RequestError(.invalid, "the \(name) is \(document.kind), not an object")
    }
    return object
  }
}

/// A request to the gateway: its keys, what is done, and what is answered. It is the same over MQTT, the socket and HTTP.
protocol GatewayRequest: RequestKeys, Equatable {
  /// `device/add`, as in its topic.
  static var verb: String { get }
  /// Carries the request out. Unless it throws, it answers once: now or later.
  @LoopActor func perform(_ call: RequestCall) throws(RequestError)
}

/// All requests, in the order in which they are listed to users.
enum RequestTable {
  static let all: [any GatewayRequest.Type] = [
    ListDevices.self, ReportHealth.self, ReloadConfiguration.self, Scan.self, AddDevice.self,
    RemoveDevice.self, ReconnectDevice.self, RenameDevice.self, PairDevice.self, UnpairDevice.self,
    ChangeOptions.self, InspectDevice.self, IdentifyDevice.self, GetProperty.self, SetProperty.self,
    RemoveValue.self, ReportAdapter.self, RunSequence.self, ResetAdapter.self, SetLogLevel.self,
    PermitJoining.self, NumberDevices.self, StartRecording.self, StopRecording.self, ListRecordings.self,
    DeleteRecording.self, ReadLog.self,
  ]

  /// Whether the devices that it names exist is not checked.
  static func request(_ verb: String, _ keys: JSONObject) throws(RequestError) -> any GatewayRequest {
    if let known = all.first(where: { $0.verb == verb }) { return try known.init(keys) }
    let hint = suggestion(for: verb, among: all.map { $0.verb }, listed: "known requests:")
    throw RequestError(.invalid, "unknown request \(Excerpt(verb)): \(hint)")
  }
}

/// A request that is carried out, and who waits for its answer.
@LoopActor struct RequestCall {
  let engine: DeviceManager
  unowned let host: any RequestHost
  /// Called once.
  let reply: @LoopActor (Result<JSONValue, RequestError>) -> Void

  func answer(_ data: JSONValue) { reply(.success(data)) }

  /// Answers when `body` has ended.
  func later(_ body: @escaping @LoopActor () async throws(RequestError) -> JSONValue) {
    loop.task { [reply] in
      do throws(RequestError) {
        reply(.success(try await body()))
      } catch {
        reply(.failure(error))
      }
    }
  }

  /// - Throws: if another gateway carries out the device's commands, or it is disabled.
  func checkUsable(_ id: DeviceID) throws(RequestError) {
    let device = try engine.description(of: id)
    if let owner = host.otherOwner(of: device) {
      throw RequestError("\(id) is owned by the gateway \(owner): send the request there")
    }
    try device.checkEnabled()
  }
}

/// The response to a request, for any transport.
package struct RequestResponse: Sendable {
  package let result: Result<JSONValue, RequestError>
  /// The sender's.
  package let transaction: JSONValue?

  package init(result: Result<JSONValue, RequestError>, transaction: JSONValue?) {
    self.result = result
    self.transaction = transaction
  }

  /// `{"status":"ok","data":…}` or `{"status":"error","code":…,"error":…}`, with the transaction.
  package var json: JSONValue {
    switch result {
    case .success(let data): return ["status": .string("ok"), "data": data, "transaction": transaction]
    case .failure(let error):
      return [
        "status": .string("error"), "code": .string(error.code.rawValue), "error": .string(error.reason),
        "data": error.data, "transaction": transaction,
      ]
    }
  }
}

/// Gets the changed keys of config.json that need a restart, or why nothing has changed.
package typealias ReloadReply = @LoopActor (Result<[String], RequestError>) -> Void
/// Reads config.json again.
package typealias ReloadHandler = @LoopActor (_ reply: @escaping ReloadReply) -> Void

/// What requests need from the gateway.
@LoopActor package protocol RequestHost: AnyObject, Sendable {
  var engine: DeviceManager { get }
  /// An entry of the list of devices.
  func listing(of device: DeviceDescription) -> JSONValue
  /// The gateway that carries out the commands for a device; nil: this one.
  func otherOwner(of device: DeviceDescription) -> GatewayID?
  /// The id under which another gateway publishes a device; nil: that of this one, or none does.
  func idElsewhere(of id: DeviceID) -> DeviceID?
  var health: GatewayHealth { get }
  var reload: ReloadHandler { get }
  var recorder: Recorder { get }
}
