import BlueZ
import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log
import MQTT
import Store

/// Reads config.json again; the reply, called on the loop, gets the keys that need a restart.
package typealias ReloadHandler =
  @Sendable (
    _ reply: @escaping @Sendable (Result<[String], ConfigurationFailure>) -> Void
  ) -> Void

/// Answers requests to the gateway itself.
final class RequestHandler: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  private let context: BridgeContext
  private unowned let bridge: Bridge
  private let state: StateDatabase
  private let reload: ReloadHandler

  private var engine: DeviceManager { context.engine }

  init(_ bridge: Bridge, _ context: BridgeContext, _ state: StateDatabase, reload: @escaping ReloadHandler) {
    self.bridge = bridge
    self.context = context
    self.state = state
    self.reload = reload
  }

  func receive(_ verb: String, _ message: MQTTReceived) {
    let topic = context.topics.bridgeResponse(to: verb)
    context.log.debug(
      "received", ["topic": message.topic, "payload": Excerpt.beginning(of: message.payload)])
    do throws(Rejection) {
      let request = try BridgeRequest(verb: verb, payload: message.payload)
      let address = ReplyAddress(of: message, topic: topic, transaction: request.transaction)
      context.log.debug("request", ["verb": verb])
      do throws(RequestError) {
        if let data = try carryOut(request.content, verb, address) { respond(data, to: address) }
      } catch {
        refuse(verb, error.reason, to: address)
      }
    } catch {
      refuse(
        verb, error.reason, to: ReplyAddress(of: message, topic: topic, transaction: error.transaction))
    }
  }

  private func respond(_ data: JSONValue, to address: ReplyAddress) {
    context.reply(Payload.response(data, transaction: address.transaction), to: address)
  }

  private func refuse(_ verb: String, _ reason: String, to address: ReplyAddress) {
    context.log.info("request refused: \(reason)", ["verb": verb])
    context.reply(Payload.response(error: reason, transaction: address.transaction), to: address)
  }

  /// - Returns: the data of the response; nil when it follows later.
  private func carryOut(
    _ request: BridgeRequest.Content, _ verb: String, _ address: ReplyAddress
  ) throws(RequestError) -> JSONValue? {
    switch request {
    case .devices: return .array(bridge.listing())
    case .health: return health
    case .scan(let seconds): scan(for: seconds, verb, address)
    case .addDevice(let identifier, let options, let desired):
      let device = try onEngine { engine throws(RequestError) in
        try engine.add(identifier, options, desired: desired)
      }
      return bridge.listing(of: device)
    case .removeDevice(let id):
      let address = try onEngine { engine throws(RequestError) in try engine.remove(id) }
      return ["id": .string(id.description), "identifier": .string(address.description)]
    case .reconnectDevice(let id):
      let state = try onEngine { engine throws(RequestError) in try engine.reconnect(id) }
      return ["id": .string(id.description), "state": .string(state.rawValue)]
    case .renameDevice(let id, let new):
      try onEngine { engine throws(RequestError) in try engine.rename(id, to: new) }
      return ["from": .string(id.description), "to": .string(new.description)]
    case .pairDevice(let device, let passkey): try pair(device, passkey, verb, address)
    case .unpairDevice(let device): try unpair(device, verb, address)
    case .setOptions(let id, let update):
      let device = try onEngine { engine throws(RequestError) in try engine.change(id, update) }
      return device.map { bridge.listing(of: $0) } ?? ["id": .string(id.description)]
    case .resetAdapter(let name): try resetAdapter(name, verb, address)
    case .setLogLevel(let level):
      Logger.level = level
      return ["level": .string(level.name)]
    case .reload:
      reload { [self] result in
        switch result {
        case .success(let keys):
          respond(["restart_required": .array(keys.map(JSONValue.string))], to: address)
        case .failure(let failure): refuse(verb, failure.description, to: address)
        }
      }
    }
    return nil
  }

  private func onEngine<Value: Sendable>(
    _ body: @Sendable (isolated DeviceManager) throws(RequestError) -> Value
  ) throws(RequestError) -> Value {
    try engine.assumeIsolated { engine in
      Result { () throws(RequestError) in try body(engine) }
    }.get()
  }

  private func scan(for seconds: Int, _ verb: String, _ address: ReplyAddress) {
    context.loop.task { [self] in
      do throws(RequestError) {
        let found = try await engine.scan(for: .seconds(seconds))
        respond(.array(found.map { $0.peripheral.json(id: $0.id) }), to: address)
      } catch {
        refuse(verb, error.reason, to: address)
      }
    }
  }

  private func pair(
    _ device: DeviceReference, _ passkey: Int?, _ verb: String, _ address: ReplyAddress
  ) throws(RequestError) {
    let reply: PairingReply = { [self] result in
      switch result {
      case .success(.paired): respond(["paired": .bool(true)], to: address)
      case .success(.passkeyRequired):
        respond(["paired": .bool(false), "passkey_required": .bool(true)], to: address)
      case .failure(let error): refuse(verb, error.reason, to: address)
      }
    }
    try onEngine { engine throws(RequestError) in
      try engine.pair(device, passkey: passkey, reply: reply)
    }
  }

  private func unpair(
    _ device: DeviceReference, _ verb: String, _ address: ReplyAddress
  ) throws(RequestError) {
    let reply: @Sendable (Result<Void, RequestError>) -> Void = { [self] result in
      switch result {
      case .success: respond(["paired": .bool(false)], to: address)
      case .failure(let error): refuse(verb, error.reason, to: address)
      }
    }
    try onEngine { engine throws(RequestError) in try engine.unpair(device, reply: reply) }
  }

  private func resetAdapter(
    _ name: String?, _ verb: String, _ address: ReplyAddress
  ) throws(RequestError) {
    let own = bridge.report.adapterName
    guard name == nil || name == own else {
      throw RequestError("this gateway uses \(own), not \(Excerpt(name ?? ""))")
    }
    context.loop.task { [self] in
      do throws(CentralError) {
        try await engine.resetAdapter()
        respond(["adapter": .string(own)], to: address)
      } catch {
        refuse(verb, "\(error)", to: address)
      }
    }
  }

  // MARK: Health

  private var health: JSONValue {
    let (adapter, known, online) = engine.assumeIsolated { ($0.adapter, $0.deviceCount, $0.onlineCount) }
    // The broker is no problem: this request has come by it.
    var problems: [String] = []
    if !adapter.isOn { problems.append("the adapter is \(adapter.word)") }
    if let trouble = state.trouble { problems.append("changes will be lost on restart: \(trouble)") }
    return [
      "healthy": .bool(problems.isEmpty),
      "problems": .array(problems.map(JSONValue.string)),
      "run": .string(context.run.description),
      "version": .string(Version.current),
      "uptime": .integer(Int(Timestamp.now.milliseconds - context.started.milliseconds) / 1000),
      "resident_kib": ResidentMemory.kibibytes.map(JSONValue.integer),
      "adapter": .string(adapter.word),
      "devices": ["known": .integer(known), "online": .integer(online)],
    ]
  }
}

extension Peripheral {
  /// An entry of `scan`.
  ///
  /// - Parameter id: of the device, if this gateway has it.
  package func json(id: DeviceID?) -> JSONValue {
    [
      "identifier": .string(address.description), "name": name.map(JSONValue.string),
      "rssi": rssi.map(JSONValue.integer), "connected": .bool(isConnected),
      "device": id.map { .string($0.description) },
    ]
  }
}
