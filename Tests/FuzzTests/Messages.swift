import GATT
import JSON
import Log
import MQTT
import TestSupport

@testable import Bridge
@testable import Configuration
@testable import Control
@testable import Devices
@testable import HomeAssistant
@testable import JSON
@testable import Web

private let map: TopicMap = {
  guard let gateway = GatewayID("attic") else { fatalError("no gateway") }
  return TopicMap(base: "microbit", gateway: gateway)
}()
private let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
private let kitchen = DeviceID(address)

/// A property, and a payload on its `…/set`.
@Sendable func checkCommand(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let property = input.choice(properties)
  let payload = CommandPayload(input.remainder())
  let transaction = payload.transaction
  do throws(RequestError) {
    var sender = Sender(nil)
    let command = try Command(payload, kitchen, property.name, property.codec, from: &sender)
    if let used = sender.transaction { expect(used == transaction, "two transactions") }
    checkSet(property, command.value)
    expect(isWritten(command.value), "\(command.value) is not stored")
  } catch {
    expectVisible(error.reason)
  }
}

/// A verb on one line, and the payload of the request.
@Sendable func checkRequest(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let verb = String(decoding: input.bytes(upTo: UInt8(ascii: "\n")), as: UTF8.self)
  check(verb, input.remainder())
}

private func check(_ verb: String, _ payload: [UInt8]) {
  var transaction: JSONValue?
  do throws(RequestError) {
    let keys = try RequestHandler.keys(in: payload)
    transaction = try Sender.transaction(keys)
    let request = try RequestTable.request(verb, keys)
    let patch = (request as? AddDevice)?.options ?? (request as? ChangeOptions)?.options
    if let patch {
      var options = DeviceOptions()
      options.merge(patch)
      expect(DeviceOptions(options.json) == options, "\(options.json): other options are stored")
      for problem in Configuration().problems(of: patch.set, at: .root) { expectVisible("\(problem)") }
    }
    if let set = request as? SetProperty, let property = properties.first(where: { $0.name == set.property })
    {
      checkSet(property, set.value)
    }
  } catch {
    expectVisible(error.reason)
    expect(
      isWritten(RequestResponse(result: .failure(error), transaction: transaction).json),
      "the response is not written")
  }
}

/// A line on the socket.
@Sendable func checkControl(_ bytes: [UInt8]) {
  do throws(RequestError) {
    let (verb, payload) = try ControlSession.parse(bytes)
    check(verb, JSONValue.object(payload).bytes)
    var errors: [ConfigurationError] = []
    _ = WatchKeys.read(.object(payload), nil, .root, &errors)
    for error in errors { expectVisible("\(error)") }
  } catch {
    expectVisible(error.reason)
  }
}

/// What a client of the page sends, in pieces of one size.
@Sendable func checkHTTP(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let size = Int(input.byte()) + 1
  let received = input.remainder()
  var (whole, pieces) = (HTTPParser(), HTTPParser())
  whole.append(received)
  let outputs = requests(&whole)
  var others: [HTTPParser.Output] = []
  for start in stride(from: 0, to: received.count, by: size) {
    pieces.append(received[start..<min(start + size, received.count)])
    others += requests(&pieces)
  }
  expect(outputs == others, "\(outputs) in one piece, \(others) in several")
  let peer: [UInt8] = [10, 0, 0, 1]
  var rules = [
    AccessRules(Passwords(control: Array("secret".utf8), reading: Array("look".utf8))),
    AccessRules(Passwords()), AccessRules(Passwords(), proxy: peer),
  ]
  for case .request(let request) in outputs {
    for index in rules.indices { _ = rules[index].refusal(request, from: peer, at: .now) }
    _ = rules[0].isReadOnly(request)
    expect(request.body.count <= HTTPParser.longestBody, "a long body")
    expect(
      request.path.hasPrefix("/") && request.path.utf8.allSatisfy { (0x21...0x7E).contains($0) }, "a path")
    for (_, value) in request.headers { expect(!value.utf8.contains { $0 == 0x0A || $0 == 0x0D }, "a line") }
    _ = request.parameter("hours")
  }
}

/// Those that are complete, without what depends on when the body arrives.
private func requests(_ parser: inout HTTPParser) -> [HTTPParser.Output] {
  var outputs: [HTTPParser.Output] = []
  while let output = parser.next() { if output != .expectsContinue { outputs.append(output) } }
  return outputs
}

/// A topic of a received message.
@Sendable func checkTopic(_ bytes: [UInt8]) {
  let text = String(decoding: bytes, as: UTF8.self)
  if let filter = TopicFilter(text), let topic = TopicName(text) {
    expect(filter.matches(topic), "a filter without wildcards matches itself")
  }
  guard let topic = TopicName(text) else { return }
  expect(TopicFilter("#")?.matches(topic) == (text.utf8.first != UInt8(ascii: "$")), "# matches")
  let subject = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: map).subject(of: text)
  expect(subject == nil || map.inbound(text) == nil, "two meanings")
  guard let meaning = map.inbound(text) else { return }
  var filters = map.gateways + [map.requests, map.deviceInfos] + map.groupCommands
  switch meaning {
  case .set(.device(let id), let property):
    filters += commands(of: id)
    _ = map.topics(of: id, .microbit).result(ofProperty: property)
  case .get(let id, let property):
    filters += commands(of: id)
    _ = map.topics(of: id, .microbit).result(ofProperty: property)
  case .deviceInfo(let id), .deviceAvailability(let id): filters += map.topics(of: id, .microbit).presence
  case .request(let verb):
    _ = map.bridgeResponse(to: verb)
    expectVisible(verb)
  case .fleetConfiguration: filters.append(map.fleetConfiguration)
  case .set(.area, _), .set(.all, _), .response, .bridgeState, .bridgeInfo, .claim: break
  }
  expect(filters.contains { $0.matches(topic) }, "\(text) is not subscribed to")
}

private func commands(of id: DeviceID) -> [TopicFilter] { map.topics(of: id, .microbit).commands }

/// What other gateways and Home Assistant have published, retained.
@Sendable func checkInfo(_ payload: [UInt8]) {
  _ = BridgeInfo.origin(in: payload)
  _ = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: map).origin(of: payload)
  guard let notice = OwnershipMachine.Notice(payload, of: kitchen, isRetained: true, { _ in .microbit })
  else { return }
  for (name, desired) in notice.handover.desired {
    guard let encoded = desired else { continue }
    let property = Profile.microbit.property(named: name)
    expect((try? property?.codec.decode(encoded.bytes)) != nil, "\(name): encoded as \(encoded.bytes)")
  }
  for since in [nil, Timestamp.now] {
    var machine = OwnershipMachine(map.gateway, kitchen, address)
    let here = OwnershipMachine.Here(onlineSince: since, online: [notice.gateway])
    _ = machine.received(notice, here)
    _ = machine.settle(here)
    expect(machine.received(notice, here).count < 10, "too many actions")
    _ = machine.availabilityChanged(here)
    expect(since == nil || !machine.isOwnedByOther, "online here, and elsewhere")
  }
}

/// Records of the state, perhaps of another version or of a broken disk.
@Sendable func checkStored(_ bytes: [UInt8]) {
  if let record = DeviceRecord(address: address, bytes: bytes) {
    let stored = record.bytes
    let again = DeviceRecord(address: address, bytes: stored)
    expect(
      again == record && again?.bytes == stored, "another record: \(String(decoding: stored, as: UTF8.self))")
  }
  guard let json = try? JSONParser.parse(bytes) else { return }
  let sender = Sender(json)
  expect(Sender(sender.json) == sender, "another sender: \(sender)")
  if let announced = Announced(json) {
    expect(Announced(announced.json) == announced, "another announcement: \(announced)")
  }
}
