import Dispatch
import EventLoop
import GATT
import Glibc
import JSON
import Log
import Store
import TestSupport

@testable import Bridge
@testable import Configuration
@testable import Devices
@testable import HomeAssistant
@testable import MQTT

/// Any messages on any topics that gateways subscribe to, retained or not, with two gateways, whose devices come and go,
/// and which lose their connections: the front ends themselves, at a broker made of a dictionary.
@Sendable func checkBroker(_ bytes: [UInt8]) {
  Logger.level = .error
  onLoop { await Broker().run(Input(bytes)) }
}

/// Runs `body` on the loop, and waits for it.
func onLoop(_ body: @escaping @LoopActor () async -> Void) {
  let end = DispatchSemaphore(value: 0)
  loop.task {
    await body()
    end.signal()
  }
  end.wait()
}

@LoopActor private final class Broker {
  /// A micro:bit, one on demand, a sensor that is only heard, with ids of their own or of their addresses.
  private static let configuration: Configuration = {
    let text = """
      {"fleet":true,"devices":[
        {"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"kitchen","area":"Home"},
        {"match":{"identifier":"C5:A1:B2:C3:D4:E6"},"id":"demand","connect":"on_demand","every":60},
        {"match":{"service":"fcd2"},"profile":"bthome"},
        {"match":{"identifier":"E6:7A:00:00:00:01"},"profile":"bthome","id":"shed"}]}
      """
    guard let profiles = try? ProfilesDirectory.profiles(in: repositoryPath("deploy/profiles")),
      let document = try? Configuration.document(Array(text.utf8)).get(),
      let configuration = try? Configuration.parse(document, profiles: profiles).get()
    else { fatalError("deploy/profiles cannot be read") }
    return configuration
  }()

  private static let addresses = [0xC5A1_B2C3_D4E5, 0xC5A1_B2C3_D4E6, 0xE67A_0000_0001].map {
    BluetoothAddress(truncating: $0)
  }

  /// Below the base topic, but for those with a slash before them.
  private static let topics = [
    "kitchen/info", "demand/info", "shed/info", "c5a1b2c3d4e5/info", "other/info", "kitchen/availability",
    "shed/availability", "bridge/here/state", "bridge/attic/state", "bridge/cellar/state", "bridge/here/info",
    "bridge/attic/info", "bridge/here/response/health", "bridge/here/request/health",
    "bridge/here/request/devices", "bridge/here/request/device/add", "bridge/here/request/device/set",
    "bridge/here/request/device/rename", "bridge/here/request/device/remove",
    "bridge/here/request/property/set",
    "bridge/here/request/property/get", "bridge/here/request/property/remove",
    "bridge/attic/request/device/rename",
    "fleet/config", "kitchen/period/set", "kitchen/led_text/set", "kitchen/values/a/set",
    "kitchen/values/ü/set",
    "kitchen/period/get", "all/period/set", "area/home/period/set", "demand/period/set",
    "/homeassistant/status", "/homeassistant/device/ble_c5a1b2c3d4e5/config",
    "/homeassistant/device/ble_e67a00000001/config", "/homeassistant/device/ble_gateway_here/config",
  ]

  @LoopActor private final class Gateway {
    let engine: DeviceManager
    let bridge: Bridge
    let homeAssistant: HomeAssistantDiscovery
    var filters: [TopicFilter] = []
    var barrier: UInt64 = 0
    private let state: StateDatabase

    init(_ id: String) {
      state = StateDatabase(path: nil)
      let gateway = GatewayID(hostName: id)
      engine = DeviceManager(
        Broker.configuration, gateway: gateway, state: state.section("devices"))
      bridge = Bridge(
        Broker.configuration, gateway: gateway, engine: engine, state: state, spool: nil)
      homeAssistant = HomeAssistantDiscovery(Broker.configuration, bridge, state.section("home_assistant"))
      bridge.add(homeAssistant)
      bridge.onFleetConfiguration = { _ = try? FleetConfiguration.read($0) }
    }

    var mqtt: MQTTClient { bridge.context.mqtt }
    func handle(_ event: MQTTEvent) { mqtt.handler?(event) }
  }

  private let gateways: [Gateway]
  private var retained: [TopicName: [UInt8]] = [:]

  init() { gateways = ["here", "attic"].map { Gateway($0) } }

  func run(_ bytes: Input) async {
    var input = bytes
    // What is there before the gateways connect.
    for _ in 0..<input.byte() % 4 { publish(&input) }
    for gateway in gateways {
      gateway.engine.add(gateway.bridge)
      gateway.engine.start()
      gateway.bridge.start()
      gateway.homeAssistant.start()
      connect(gateway)
    }
    settle()
    while !input.isEmpty {
      let operation = input.byte()
      let gateway = gateways[Int(operation >> 7)]
      switch operation % 8 {
      case 0..<4: publish(&input)
      case 4: change(&input, of: gateway)
      case 5: deliver(barrier: gateway)
      case 6:
        disconnect(gateway)
        connect(gateway)
      default: try? await loop.sleep(for: .zero)
      }
      settle()
    }
    try? await loop.sleep(for: .zero)
    for gateway in gateways { _ = gateway.bridge.health.json.bytes }
    settle()
    // They refer to each other.
    for gateway in gateways { gateway.engine.remove(gateway.bridge) }
  }

  // MARK: What happens

  private func publish(_ input: inout Input) {
    let kind = input.byte()
    var name = Self.topics[Int(kind >> 1) % Self.topics.count]
    if kind == 255 { name = "/" + String(decoding: input.bytes(upTo: 0xFF), as: UTF8.self) }
    let text = name.hasPrefix("/") ? String(name.dropFirst()) : "microbit/" + name
    guard let topic = TopicName(text) else { return }
    let payload = input.bytes(upTo: 0xFF)
    if kind & 1 == 1 { retained[topic] = payload.isEmpty ? nil : payload }
    route(topic, payload)
  }

  /// A device comes online, or goes, or sends a value.
  private func change(_ input: inout Input, of gateway: Gateway) {
    let kind = input.byte()
    guard let publisher = gateway.bridge.publishers[input.choice(Self.addresses)] else { return }
    var device = publisher.device
    if kind % 4 == 3 {
      let reading = Reading(property: 0, value: .integer(Int(kind)), time: .now, sequence: 1)
      if !device.profile.hasLinks, device.profile.properties[0].kind == .event {
        publisher.told(reading, isElsewhere: false)
      } else {
        publisher.reported(reading)
      }
      return
    }
    device.isOnline = kind % 2 == 1
    device.session = !device.profile.hasLinks ? .listening : device.isOnline ? .live : .absent
    device.rssi = Int(Int8(bitPattern: kind))
    if device.isOnline {
      device.lastConnected = .now
      let names = Set(device.profile.properties.prefix(Int(kind >> 2)).map(\.name))
      device.learn(offered: names, usable: names, isNewLink: true)
    }
    publisher.changed(.availability, device)
  }

  private func connect(_ gateway: Gateway) {
    gateway.mqtt.outbox.connected(MQTTConnection())
    gateway.filters = []
    gateway.handle(.connected(MQTTConnection()))
    settle()
    deliver(barrier: gateway)
  }

  private func disconnect(_ gateway: Gateway) {
    gateway.mqtt.outbox.disconnected()
    gateway.handle(.disconnected(nil))
  }

  private func deliver(barrier gateway: Gateway) {
    gateway.barrier += 1
    let context = gateway.bridge.context
    arrived(
      context.topics.bridgeRequest(ReportHealth.verb), Barriers.payload(gateway.barrier, of: context.run),
      at: gateway, isRetained: false)
  }

  // MARK: The broker

  /// Delivers what the gateways have sent, and what is retained for new subscriptions, until nothing is left.
  private func settle() {
    var sent = 0
    var isQuiet = false
    while !isQuiet {
      isQuiet = true
      for gateway in gateways {
        subscribe(gateway)
        while let message = Self.next(gateway.mqtt) {
          isQuiet = false
          sent += 1
          expect(sent < 20_000, "the gateways answer each other without end: \(message.topic)")
          if message.retain { retained[message.topic] = message.payload.isEmpty ? nil : message.payload }
          route(message.topic, message.payload)
        }
      }
    }
  }

  private static func next(_ client: MQTTClient) -> MQTTMessage? {
    guard let packet = client.outbox.next() else { return nil }
    client.outbox.sent(packet, as: 1)
    if packet.message.qos != .atMostOnce { _ = client.outbox.acknowledged(1) }
    return packet.message
  }

  private func subscribe(_ gateway: Gateway) {
    let filters = gateway.mqtt.subscriptions.all.flatMap(\.filters)
    let new = Set(filters).subtracting(gateway.filters)
    gateway.filters = filters
    for filter in filters where new.contains(filter) {
      for (topic, payload) in retained where filter.matches(topic) {
        arrived(topic, payload, at: gateway, isRetained: true)
      }
    }
  }

  private func route(_ topic: TopicName, _ payload: [UInt8]) {
    for gateway in gateways where gateway.filters.contains(where: { $0.matches(topic) }) {
      arrived(topic, payload, at: gateway, isRetained: false)
    }
  }

  private func arrived(_ topic: TopicName, _ payload: [UInt8], at gateway: Gateway, isRetained: Bool) {
    gateway.handle(
      .message(
        MQTTReceived(
          topic: topic, payload: payload, qos: .atLeastOnce, retain: isRetained,
          responseTopic: TopicName("answer"), correlationData: nil)))
  }
}
