import Configuration
import Testing

@testable import Bridge

@Suite struct GatewaysOnlineTests {
  @Test func gatewaysBeyondTheCapacityCountAsOffline() throws {
    var online = GatewaysOnline()
    let ids = try (0...GatewaysOnline.capacity).map { try #require(GatewayID("gateway-\($0)")) }
    for id in ids { online.set(id, isOnline: true) }
    #expect(ids.filter(online.contains).count == GatewaysOnline.capacity)
    #expect(!online.contains(ids[GatewaysOnline.capacity]))
    online.set(ids[0], isOnline: false)
    online.set(ids[GatewaysOnline.capacity], isOnline: true)
    #expect(!online.contains(ids[0]) && online.contains(ids[GatewaysOnline.capacity]))
  }
}
