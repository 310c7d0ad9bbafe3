/// The services of a peripheral as bluetoothd finds them: handles, UUIDs, flags.
struct GATTDatabase: Sendable {
  struct Service: Sendable {
    fileprivate(set) var handle: UInt16 = 0
    let uuid: String
    fileprivate(set) var characteristics: [Characteristic]

    init(_ uuid: String, _ characteristics: [Characteristic]) {
      self.uuid = uuid
      self.characteristics = characteristics
    }
  }

  struct Characteristic: Sendable {
    fileprivate(set) var handle: UInt16 = 0
    let uuid: String
    let flags: [String]
    let content: Content
    /// The bytes that it holds at first.
    let value: [UInt8]
    /// The handle of the client characteristic configuration, where there is one.
    fileprivate(set) var configuration: UInt16?

    init(_ uuid: String, _ flags: [String], _ content: Content, _ value: [UInt8] = []) {
      self.uuid = uuid
      self.flags = flags
      self.content = content
      self.value = value
    }

    var notifies: Bool { flags.contains("notify") }
    var indicates: Bool { flags.contains("indicate") }
    var isReadable: Bool { flags.contains("read") }
    var isWritable: Bool { flags.contains("write") }
    var takesCommands: Bool { flags.contains("write-without-response") }
  }

  /// What a characteristic holds.
  enum Content: Sendable, Equatable {
    /// The bytes it began with, whatever is written.
    case fixed
    /// The same, read by bluetoothd itself while it resolves the services: its Value is there from the start.
    case fixedAndCached
    /// What was written last, if it has one of these lengths.
    case stored(ClosedRange<Int>)
    /// The micro:bit's LEDs, a byte for each row: a shorter write leaves the other rows as they are.
    case rows
    case temperature
    case temperaturePeriod
    case acceleration
    case accelerationPeriod
  }

  let services: [Service]
  /// What Device1.UUIDs holds once services are resolved; sorted, as bluetoothd does.
  let uuids: [String]
  /// The characteristics of the sensors, by their raw values.
  private let sampled: [UInt16?]

  /// These services after the GATT service, which all have.
  ///
  /// Handles are given in this order, so that those of a micro:bit with its temperature, and with them its object
  /// paths, are those of the recordings: each service and each characteristic's declaration has one, its value and its
  /// client configuration follow.
  init(_ own: [Service]) {
    var handle: UInt16 = 0x06
    func take() -> UInt16 {
      defer { handle += 1 }
      return handle
    }
    var services = [Self.attributes] + own
    for at in services.indices {
      services[at].handle = take()
      for position in services[at].characteristics.indices {
        services[at].characteristics[position].handle = take()
        _ = take()
        let characteristic = services[at].characteristics[position]
        if characteristic.notifies || characteristic.indicates {
          services[at].characteristics[position].configuration = take()
        }
      }
    }
    self.services = services
    uuids = Set([Self.short(0x1800)] + services.map(\.uuid)).sorted()
    let all = services.flatMap(\.characteristics)
    sampled = Sensor.allCases.map { sensor in all.first { $0.content == sensor.content }?.handle }
  }

  func characteristic(_ handle: UInt16) -> Characteristic? {
    for service in services {
      for characteristic in service.characteristics where characteristic.handle == handle {
        return characteristic
      }
    }
    return nil
  }

  /// The service that a characteristic belongs to.
  func service(of handle: UInt16) -> Service? { services.last { $0.handle < handle } }

  /// Number `instance`, from 0, of the characteristics with that UUID; in that service where one is named.
  func characteristic(_ uuid: String, instance: Int, in service: String?) -> Characteristic? {
    let all = services.filter { service == nil || $0.uuid == service }.flatMap(\.characteristics)
    return all.filter { $0.uuid == uuid }.dropFirst(instance).first
  }

  /// The characteristic that has the samples of a sensor.
  func handle(of sensor: Sensor) -> UInt16? { sampled[sensor.rawValue] }

  /// The sensor whose samples a characteristic has.
  func sensor(of handle: UInt16) -> Sensor? { Sensor.allCases.first { self.handle(of: $0) == handle } }

  /// Whether a characteristic is open on every link: those of the GATT service and the device information.
  func isOpen(_ handle: UInt16) -> Bool {
    [Self.short(0x1801), Self.short(0x180A)].contains(service(of: handle)?.uuid)
  }
}

/// What takes samples by itself and notifies each.
enum Sensor: Int, Sendable, CaseIterable {
  case temperature
  case acceleration

  var content: GATTDatabase.Content {
    switch self {
    case .temperature: .temperature
    case .acceleration: .acceleration
    }
  }
}

extension GATTDatabase {
  /// Something else: device information and nothing of interest.
  static let stranger = GATTDatabase([information(model: "Stranger", serial: "0", firmware: "1.0")])

  private static let attributes = Service(
    short(0x1801),
    [
      Characteristic(short(0x2A05), ["indicate"], .fixed),
      // Written by bluetoothd, of no consequence here.
      Characteristic(short(0x2B29), ["read", "write"], .fixed, [0]),
      Characteristic(
        short(0x2B2A), ["read"], .fixedAndCached,
        [
          0x0E, 0x1C, 0x1F, 0xAD, 0x2B, 0x33, 0xE0, 0x8C, 0xE7, 0x65, 0x73, 0x23, 0xBD, 0xB6, 0xFD, 0x98,
        ]),
    ])

  static func information(model: String, serial: String, firmware: String) -> Service {
    Service(
      short(0x180A),
      [
        Characteristic(short(0x2A24), ["read"], .fixed, Array(model.utf8)),
        Characteristic(short(0x2A25), ["read"], .fixed, Array(serial.utf8)),
        Characteristic(short(0x2A26), ["read"], .fixed, Array(firmware.utf8)),
      ])
  }

  /// A 16-bit UUID in full, on the Bluetooth base UUID.
  private static func short(_ uuid: Int) -> String {
    "0000\(hex(uuid, digits: 4).lowercased())-0000-1000-8000-00805f9b34fb"
  }
}
