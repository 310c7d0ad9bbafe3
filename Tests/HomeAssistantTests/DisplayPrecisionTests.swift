import Configuration
import GATT
import JSON
import TestSupport
import Testing

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// Home Assistant adds zeros up to the decimals that it is told.
@Suite struct DisplayPrecisionTests {
  /// The sensors of a device with this profile: their keys, units and decimals.
  private static func sensors(of profile: Profile) throws -> [(key: String, unit: String?, decimals: Int)] {
    let map = TopicMap(base: "b", gateway: GatewayID(hostName: "g"))
    let device = DeviceDescription(try DeviceID("thing"), BluetoothAddress(truncating: 1), profile)
    let document = Discovery(prefix: "ha", qos: .atMostOnce, topics: map)
      .document(of: device, topics: map.topics(of: device.id, profile))
    return try object(document, "cmps").members.compactMap { member in
      guard case .integer(let decimals)? = member.value["sug_dsp_prc"] else { return nil }
      return (member.name, member.value["unit_of_meas"]?.text, decimals)
    }
  }

  @Test func readyProfilesShowNoMoreThanTheyMeasure() throws {
    let most = ["°C": 2, "%": 2, "Pa": 1, "V": 3]
    for profile in try ProfilesDirectory.profiles(in: repositoryPath("deploy/profiles")) {
      for sensor in try Self.sensors(of: profile) {
        #expect(
          sensor.decimals <= sensor.unit.flatMap { most[$0] } ?? 3,
          "\(profile.name) \(sensor.key): \(sensor.decimals)")
      }
    }
  }

  @Test(
    arguments: [
      (0.01, "°C", nil, 2), (0.005, "°C", nil, 2), (1.0 / 256, "°C", nil, 2), (0.0025, "g", nil, 4),
      (3.125e-05, "V", nil, 3), (0.5, "%", nil, 1), (1, "°C", nil, 0), (100, "lx", nil, 0),
      (1, "°C", -2.5, 1),
      (1e-7, "°", nil, 6), (0.001, "g", nil, 3), (0.25, "°C", nil, 2), (0.125, "g", nil, 3),
      (0.05, "g", nil, 2), (1.0 / 3, "g", nil, 1), (1.0 / 256, "g", nil, 3), (2.5, "g", nil, 1),
      (0.25, "g", 0.125, 3),
    ] as [(Double, String, Double?, Int)])
  func stepDecides(step: Double, unit: String, offset: Double?, decimals: Int) throws {
    let property = Property(
      name: "p", service: BluetoothUUID(short: 1), characteristic: BluetoothUUID(short: 2), access: .notify,
      codec: try Codec(.scalar(.init(.int32, scale: step))), unit: unit, offset: offset,
      homeAssistant: [HomeAssistantEntity(.sensor(nil), name: "P")])
    let sensors = try Self.sensors(of: try Profile(name: "thing", properties: [property]))
    #expect(sensors.map(\.decimals) == [decimals])
  }
}
