import BlueZ
import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

/// Carries out requests to the gateway itself, from any transport.
@LoopActor package final class RequestHandler {
  /// Called once.
  typealias Reply = @LoopActor (Result<JSONValue, RequestError>) -> Void

  let engine: DeviceManager
  unowned let host: any RequestHost
  private let log = Logger(component: "gateway")

  /// - Parameter host: must outlive the handler.
  package init(_ engine: DeviceManager, host: any RequestHost) {
    self.engine = engine
    self.host = host
  }

  /// - Parameters:
  ///   - verb: `devices`, `device/add` …
  ///   - payload: the request's keys as a JSON object, or nothing.
  ///   - respond: called once.
  package func handle(
    _ verb: String, _ payload: [UInt8], respond: @escaping @LoopActor (RequestResponse) -> Void
  ) {
    let request: BridgeRequest
    do throws(Rejection) {
      request = try BridgeRequest(verb: verb, payload: payload)
    } catch {
      log.info("request refused: \(error.reason)", ["verb": verb])
      return respond(
        RequestResponse(
          result: .failure(RequestError(.invalid, error.reason)), transaction: error.transaction))
    }
    log.debug("request", ["verb": verb])
    carryOut(request.content) { [log] result in
      if case .failure(let error) = result { log.info("request refused: \(error.reason)", ["verb": verb]) }
      respond(RequestResponse(result: result, transaction: request.transaction))
    }
  }

  /// As ``handle(_:_:respond:)``, for a request that only one transport has.
  package func handleOwn<Keys: RequestKeys>(
    _ payload: JSONObject, as keys: Keys.Type, respond: (RequestResponse) -> Void,
    _ body: (Keys) -> Result<JSONValue, RequestError>
  ) {
    do throws(Rejection) {
      let transaction = try Sender.transaction(payload)
      let keys = try BridgeRequest.read(payload, transaction) { Keys.read($0, &$1) }
      respond(RequestResponse(result: body(keys), transaction: transaction))
    } catch {
      respond(
        RequestResponse(
          result: .failure(RequestError(.invalid, error.reason)), transaction: error.transaction))
    }
  }

  private func carryOut(_ request: BridgeRequest.Content, _ reply: @escaping Reply) {
    do throws(RequestError) {
      if let data = try answer(request, reply) { reply(.success(data)) }
    } catch {
      reply(.failure(error))
    }
  }

  /// - Returns: the data of the response; nil if `reply` gets it later.
  private func answer(
    _ request: BridgeRequest.Content, _ reply: @escaping Reply
  ) throws(RequestError) -> JSONValue? {
    switch request {
    case .devices: return .array(engine.devices.map { host.listing(of: $0) })
    case .health: return host.health
    case .scan(let seconds):
      later(reply) { [engine] () throws(RequestError) in
        let found = try await engine.scan(for: .seconds(seconds))
        return .array(found.map { $0.peripheral.json($0.device) })
      }
    case .addDevice(let address, let options):
      let device = try engine.add(address, options)
      return host.listing(of: device)
    case .removeDevice(let id):
      let address = try engine.remove(id)
      return ["id": .string(id.description), "identifier": .string(address.description)]
    case .reconnectDevice(let id):
      let state = try engine.reconnect(id)
      return ["id": .string(id.description), "session": .string(state.rawValue)]
    case .renameDevice(let id, let new):
      let elsewhere = host.idElsewhere(of: id)
      try engine.rename(id, to: new, elsewhere: elsewhere)
      return ["from": .string(id.description), "to": .string(new.description)]
    case .pairDevice(let device, let passkey): try pair(device, passkey, reply)
    case .unpairDevice(let device): try unpair(device, reply)
    case .setOptions(let id, let options):
      let device = try engine.change(id, options)
      return device.map { host.listing(of: $0) } ?? ["id": .string(id.description)]
    case .inspectDevice(let selector):
      later(reply) { [engine] () throws(RequestError) in try await engine.inspect(selector).json }
    case .identifyDevice(let id):
      try usable(id)
      later(reply) { [engine] () throws(RequestError) in
        let (property, text) = try await engine.identify(id)
        return [
          "id": .string(id.description), "property": .string(property), "value": text.map(JSONValue.string),
        ]
      }
    case .getProperty(let property, let id): try get(property, of: id, reply)
    case .setProperty(let property, let id, let value, let ttl): try set(property, of: id, value, ttl, reply)
    case .removeValue(let name, let id):
      try usable(id)
      guard let key = NamedValue.key(of: name) ?? ValueKey(name) else {
        throw RequestError(.notFound, "\(id) has no value \(Excerpt(name))")
      }
      try engine.removeValue(key, of: id)
      return ["id": .string(id.description), "property": .string(NamedValue.name(key))]
    case .adapterState(let name):
      let adapter = try engine.adapter(named: name)
      return (["adapter": .string(adapter.name)] as JSONValue).merging(adapter.stateJSON)
    case .sequence(let id, let steps, let seconds):
      try usable(id)
      later(reply) { [engine] () throws(RequestError) in
        let results = try await engine.sequence(steps, on: id, within: seconds)
        let data = JSONValue.array(
          results.map { (["property": .string($0.property)] as JSONValue).merging($0.json) })
        guard let last = results.last, !last.outcome.isSuccess else { return data }
        let step = "step \(results.count) of \(steps.count), \(last.property)"
        throw RequestError(.failed, "\(step): \(last.outcome.reason ?? last.outcome.word)", data: data)
      }
    case .resetAdapter(let name): try resetAdapter(name, reply)
    case .permitJoin(let seconds, let device):
      engine.permitJoin(seconds: seconds, device: device)
      return ["time": .integer(seconds), "device": device.map { .string($0.description) }]
    case .setLogLevel(let level):
      Logger.level = level
      return ["level": .string(level.name)]
    case .reload:
      host.reload { result in
        reply(
          result.map { ["restart_required": .array($0.map(JSONValue.string))] }
            .mapError { RequestError(.invalid, $0.description) })
      }
    }
    return nil
  }

  /// Replies when `body` has ended.
  private func later(
    _ reply: @escaping Reply, _ body: @escaping @LoopActor () async throws(RequestError) -> JSONValue
  ) {
    loop.task {
      do throws(RequestError) {
        reply(.success(try await body()))
      } catch {
        reply(.failure(error))
      }
    }
  }

  private func pair(
    _ device: DeviceReference, _ passkey: Int?, _ reply: @escaping Reply
  ) throws(RequestError) {
    let paired: PairingReply = { result in
      switch result {
      case .success(.paired): reply(.success(["paired": .bool(true)]))
      case .success(.passkeyRequired):
        reply(.success(["paired": .bool(false), "passkey_required": .bool(true)]))
      case .failure(let error): reply(.failure(error))
      }
    }
    try engine.pair(device, passkey: passkey, reply: paired)
  }

  private func unpair(_ device: DeviceReference, _ reply: @escaping Reply) throws(RequestError) {
    let unpaired: @LoopActor (Result<Void, RequestError>) -> Void = { result in
      switch result {
      case .success: reply(.success(["paired": .bool(false)]))
      case .failure(let error): reply(.failure(error))
      }
    }
    try engine.unpair(device, reply: unpaired)
  }

  private func resetAdapter(_ name: String?, _ reply: @escaping Reply) throws(RequestError) {
    let own = try engine.adapter(named: name).name
    later(reply) { [engine] () throws(RequestError) in
      do throws(CentralError) {
        try await engine.resetAdapter(own)
      } catch {
        throw RequestError("\(error)")
      }
      return ["adapter": .string(own)]
    }
  }
}

extension Peripheral {
  /// An entry of `scan`.
  ///
  /// - Parameter device: nil: it is not a device of this gateway.
  package func json(_ device: DeviceDescription?) -> JSONValue {
    let own: JSONValue = [
      "rssi": rssi.map(JSONValue.integer), "connected": .bool(isConnected),
      "services": services.isEmpty ? nil : .array(services.map { .string($0.description) }),
      "manufacturer_data": Self.json(advertised.manufacturerData) { Hexadecimal.text($0, bytes: 2) },
      "service_data": Self.json(advertised.serviceData, \.description),
      "flags": advertised.flags.isEmpty ? nil : .string(Hexadecimal.text(advertised.flags)),
      "advertising_data": Self.json(advertised.other) { Hexadecimal.text($0, bytes: 1) },
    ]
    return identity(device).merging(own)
  }

  /// Its address and names, and the id of the device that it is.
  func identity(_ device: DeviceDescription?) -> JSONValue {
    [
      "identifier": .string(address.description),
      "name": (device?.configuredName ?? name).map(JSONValue.string),
      "bluetooth_name": name.map(JSONValue.string), "device": device.map { .string($0.id.description) },
    ]
  }

  /// The bytes in hexadecimal; nil if there are none.
  private static func json<Key>(_ data: [Key: [UInt8]], _ name: (Key) -> String) -> JSONValue? {
    guard !data.isEmpty else { return nil }
    let members = data.map { (name($0.key), JSONValue.string(Hexadecimal.text($0.value))) }
    return .object(Dictionary(uniqueKeysWithValues: members))
  }
}
