import Configuration
import Devices
import EventLoop
import GATT
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import HomeAssistant
@testable import MQTT

/// What is announced again, and then removed, when Home Assistant has started.
@LoopActor @Suite struct HomeAssistantStartTests {
  private let bridge: Bridge
  private let discovery: HomeAssistantDiscovery
  private let made = Record<Announcement>()
  private let removal = Removal(
    object: "ble_c5a1b2c3d4e5", announced: Announced(prefix: "homeassistant", components: []))

  init() {
    let (configuration, gateway) = (Configuration(), GatewayID(hostName: "here"))
    let state = StateDatabase(path: nil)
    let engine = DeviceManager(configuration, gateway: gateway, state: state.section("devices"))
    bridge = Bridge(configuration, gateway: gateway, engine: engine, state: state, spool: nil)
    discovery = HomeAssistantDiscovery(configuration, bridge, state.section("home_assistant"))
    discovery.store.add(removal)
    discovery.schedule.perform = { [made, perform = discovery.schedule.perform] in
      made.append($0)
      return perform($0)
    }
  }

  /// What is announced from place `start` on until all that waits is announced.
  private func announced(from start: Int = 0) async throws -> [Announcement] {
    let last = Announcement.link(BluetoothAddress(truncating: 1))
    discovery.schedule.append(last)
    _ = try await made.first(from: start, "the last one") { $0 == last }
    return made.elements.dropFirst(start).filter { $0 != last }
  }

  /// What is retained may be of an earlier start.
  @Test(arguments: [false, true])
  func aStartBeforeTheGatewayMayPublishIsFollowedWhenItMay(_ isRetained: Bool) async throws {
    discovery.received(
      MQTTReceived(
        topic: removal.status, payload: Array("online".utf8), qos: .atLeastOnce, retain: isRetained))
    _ = try await announced()
    for isFirst in [true, false] {
      let start = made.count
      discovery.admitted()
      let all = try await announced(from: start)
      let expected: [Announcement] =
        isFirst && !isRetained
        ? [.document(.gateway, .reannounce), .removal(removal.topic.string, .reannounce)]
        : [.document(.gateway, .plain)]
      #expect(all == expected)
    }
  }

  @Test func aStartIsForgottenWithItsConnection() async throws {
    discovery.received(
      MQTTReceived(topic: removal.status, payload: Array("online".utf8), qos: .atLeastOnce, retain: false))
    discovery.disconnected()
    _ = try await announced()
    let start = made.count
    discovery.admitted()
    let all = try await announced(from: start)
    #expect(all == [.document(.gateway, .plain)])
  }

  /// Home Assistant has not received the device once more, and could not remove it.
  @Test(arguments: [(.quotaExceeded, true), (.tooLarge(most: 10), false)] as [(MQTTRefusal, Bool)])
  func aRemovalWhoseReannouncementIsRefusedIsKept(_ refusal: MQTTRefusal, _ isKept: Bool) async throws {
    let topic = removal.topic.string
    discovery.schedule.append(.removal(topic, .remove))
    let isRepeated = discovery.refused(removal.topic, refusal)
    #expect(!isRepeated)
    let all = try await announced()
    #expect(all == (isKept ? [] : [.removal(topic, .remove)]))
  }
}
