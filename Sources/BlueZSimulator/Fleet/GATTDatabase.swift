/// The services of a peripheral as bluetoothd finds them: handles, UUIDs, flags.
///
/// The handles are those of the recordings, so that object paths are the same.
struct GATTDatabase: Sendable {
  struct Service: Sendable {
    let handle: UInt16
    let uuid: String
    let characteristics: [Characteristic]
  }

  struct Characteristic: Sendable {
    let handle: UInt16
    let uuid: String
    let flags: [String]
    let content: Content
    /// The handle of the client characteristic configuration, where there is one.
    var configuration: UInt16?

    var notifies: Bool { flags.contains("notify") }
    var indicates: Bool { flags.contains("indicate") }
    var isReadable: Bool { flags.contains("read") }
    var isWritable: Bool { flags.contains("write") }
  }

  /// What a characteristic holds.
  enum Content: Sendable {
    case fixed([UInt8])
    /// Read by bluetoothd itself while it resolves the services: its Value is there from the start.
    case fixedAndCached([UInt8])
    case temperature
    case period
    /// Written by bluetoothd, of no consequence here.
    case clientFeatures
    case nothing
  }

  let services: [Service]
  /// What Device1.UUIDs holds once services are resolved; sorted, as bluetoothd does.
  let uuids: [String]

  func characteristic(_ handle: UInt16) -> Characteristic? {
    for service in services {
      for characteristic in service.characteristics where characteristic.handle == handle {
        return characteristic
      }
    }
    return nil
  }
}

extension GATTDatabase {
  static func microBit(serial: Int, hasPeriod: Bool = true) -> GATTDatabase {
    let period = Characteristic(
      handle: 0x19, uuid: "e95d1b25-251d-470a-a062-fa1922dfa9a8", flags: ["read", "write"],
      content: .period)
    return GATTDatabase(
      services: [
        attributes,
        information(model: "BBC micro:bit", serial: String(serial), firmware: "2.1.1"),
        Service(
          handle: 0x15, uuid: "e95d6100-251d-470a-a062-fa1922dfa9a8",
          characteristics: [
            Characteristic(
              handle: 0x16, uuid: "e95d9250-251d-470a-a062-fa1922dfa9a8", flags: ["read", "notify"],
              content: .temperature, configuration: 0x18)
          ] + (hasPeriod ? [period] : [])),
      ],
      uuids: [short(0x1800), short(0x1801), short(0x180A), "e95d6100-251d-470a-a062-fa1922dfa9a8"])
  }

  /// Something else: device information and nothing of interest.
  static let stranger = GATTDatabase(
    services: [attributes, information(model: "Stranger", serial: "0", firmware: "1.0")],
    uuids: [short(0x1800), short(0x1801), short(0x180A)])

  private static let attributes = Service(
    handle: 0x06, uuid: short(0x1801),
    characteristics: [
      Characteristic(
        handle: 0x07, uuid: short(0x2A05), flags: ["indicate"], content: .nothing, configuration: 0x09),
      Characteristic(
        handle: 0x0A, uuid: short(0x2B29), flags: ["read", "write"], content: .clientFeatures),
      Characteristic(
        handle: 0x0C, uuid: short(0x2B2A), flags: ["read"],
        content: .fixedAndCached([
          0x0E, 0x1C, 0x1F, 0xAD, 0x2B, 0x33, 0xE0, 0x8C, 0xE7, 0x65, 0x73, 0x23, 0xBD, 0xB6, 0xFD, 0x98,
        ])),
    ])

  private static func information(model: String, serial: String, firmware: String) -> Service {
    Service(
      handle: 0x0E, uuid: short(0x180A),
      characteristics: [
        Characteristic(
          handle: 0x0F, uuid: short(0x2A24), flags: ["read"], content: .fixed(Array(model.utf8))),
        Characteristic(
          handle: 0x11, uuid: short(0x2A25), flags: ["read"], content: .fixed(Array(serial.utf8))),
        Characteristic(
          handle: 0x13, uuid: short(0x2A26), flags: ["read"], content: .fixed(Array(firmware.utf8))),
      ])
  }

  /// A 16-bit UUID in full, on the Bluetooth base UUID.
  private static func short(_ uuid: Int) -> String {
    "0000\(hex(uuid, digits: 4).lowercased())-0000-1000-8000-00805f9b34fb"
  }
}
