import Configuration
import GATT
import Log
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

@Suite struct ClaimTests {
  private static let address = BluetoothAddress(truncating: 1)

  private static func claim(of gateway: String, _ random: inout SplitMix64) throws -> Claim {
    let ids = [DeviceID(address), try DeviceID("attic"), try DeviceID("hall")]
    let time = Timestamp(milliseconds: 1_767_225_600_000 + .random(in: 0...3, using: &random) * 40_000)
    return Claim(
      gateway: GatewayID(gateway)!, id: ids.randomElement(using: &random)!,
      since: [nil, "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"].randomElement(using: &random)!,
      isExclusive: .random(using: &random), hasLink: .random(using: &random),
      rssi: [nil, -90, -80, -70].randomElement(using: &random)!,
      lastHeard: [nil, time].randomElement(using: &random)!)
  }

  /// Else each of the two would publish the device again because the other did, without end.
  @Test func ofTwoClaimsOneAtMostGoesBeforeTheOther() throws {
    var random = SplitMix64(state: 1)
    for _ in 0..<20_000 {
      let (one, other) = (try Self.claim(of: "a", &random), try Self.claim(of: "b", &random))
      let both =
        one.goesBefore(other, isOnline: true, of: Self.address)
        && other.goesBefore(one, isOnline: true, of: Self.address)
      #expect(!both, "\(one) and \(other)")
      if both { break }
    }
  }
}
