import Configuration
import GATT
import Log
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

@Suite struct ClaimTests {
  private static let address = BluetoothAddress(truncating: 1)
  private static let start = Timestamp("2026-01-01T00:00:00.000Z")!

  private static func claim(of gateway: String, _ random: inout SplitMix64) throws -> Claim {
    let ids = [DeviceID(address), try DeviceID("attic"), try DeviceID("hall")]
    let time = start + .seconds(Int.random(in: 0...3, using: &random) * 40)
    return Claim(
      gateway: GatewayID(gateway)!, id: ids.randomElement(using: &random)!,
      since: [nil, start, start + .seconds(1)].randomElement(using: &random)!,
      isExclusive: .random(using: &random), hasLink: .random(using: &random),
      rssi: [nil, -90, -80, -70].randomElement(using: &random)!,
      lastHeard: [nil, time].randomElement(using: &random)!)
  }

  /// Else gateways would publish the device again because another one did, without end.
  @Test func noClaimGoesBeforeItselfByWayOfOthers() throws {
    let now = Self.start + .seconds(120)
    var random = SplitMix64(state: 1)
    func goBefore(_ claims: [Claim]) -> Bool {
      zip(claims, claims.dropFirst() + claims.prefix(1)).allSatisfy {
        $0.goesBefore($1, isOnline: true, of: Self.address, at: now)
      }
    }
    for _ in 0..<20_000 {
      let two = [try Self.claim(of: "a", &random), try Self.claim(of: "b", &random)]
      try #require(!goBefore(two), "\(two)")
    }
    // Of those that only hear it, under one id.
    for _ in 0..<20_000 {
      let three = ["a", "b", "c"].map { gateway in
        Claim(
          gateway: GatewayID(gateway)!, id: DeviceID(Self.address), since: Self.start,
          isExclusive: false, hasLink: false, rssi: Int.random(in: -90...(-50), using: &random),
          lastHeard: now + .seconds(Int.random(in: -200...0, using: &random)))
      }
      try #require(!goBefore(three), "\(three)")
    }
  }
}
