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

@LoopActor @Suite struct SubscriptionTests {
  /// A device that was removed before is found again, and is gone before it was announced: Home Assistant is still to remove it
  /// at its next start, unless another gateway announces it until then.
  @Test func aRemovalIsFollowedThoughItsDeviceWasHereMeanwhile() async throws {
    let folder = try TemporaryFolder()
    let removal = Removal(
      object: "ble_c5a1b2c3d4e5", announced: Announced(prefix: "homeassistant", components: []))
    let before = StateDatabase(path: folder.path + "/state.db")
    DiscoveryStore(before.section("home_assistant")).add(removal)
    await before.close(within: patience)
    let state = StateDatabase(path: folder.path + "/state.db")
    let (configuration, gateway) = (Configuration(), GatewayID(hostName: "here"))
    let engine = DeviceManager(configuration, gateway: gateway, state: state.section("devices"))
    let bridge = Bridge(configuration, gateway: gateway, engine: engine, state: state, spool: nil)
    let discovery = HomeAssistantDiscovery(configuration, bridge, state.section("home_assistant"))
    bridge.add(discovery)
    discovery.start()
    let topic = TopicFilter(removal.topic)
    func isFollowed() -> Bool {
      bridge.context.mqtt.subscriptions.all.contains { $0.filters.contains(topic) }
    }
    #expect(isFollowed())
    let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
    let device = bridge.attach(DeviceDescription(DeviceID(address), address))
    #expect(isFollowed())
    device?.detach(.neverConnected)
    #expect(isFollowed())
    await state.close(within: patience)
  }
}
