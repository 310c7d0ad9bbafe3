import GATT

/// The services of a peripheral as discovered by bluetoothd: handles, UUIDs, flags.
package struct GATTDatabase: Sendable {
  /// A service with its characteristics. Several may have the same UUID.
  package struct Service: Sendable, Equatable {
    package fileprivate(set) var handle: UInt16 = 0
    package var uuid: BluetoothUUID
    /// The characteristics in the order of their handles.
    package var characteristics: [Characteristic]

    package init(_ uuid: BluetoothUUID, _ characteristics: [Characteristic]) {
      self.uuid = uuid
      self.characteristics = characteristics
    }

    init(_ uuid: BluetoothUUID, _ characteristics: Characteristic...) { self.init(uuid, characteristics) }
  }

  /// A characteristic.
  package struct Characteristic: Sendable, Equatable {
    package fileprivate(set) var handle: UInt16 = 0
    package var uuid: BluetoothUUID
    /// The supported operations.
    package var flags: Set<Flag>
    package var content: Content
    /// The initial value, also after a reset.
    package var value: [UInt8]
    /// In a database, the client configuration is the first one, if the characteristic notifies or indicates.
    package var descriptors: [Descriptor] = []

    package init(
      _ uuid: BluetoothUUID, _ flags: Set<Flag>, _ content: Content = .stored(0...GATTDatabase.longestValue),
      value: [UInt8] = []
    ) {
      self.uuid = uuid
      self.flags = flags
      self.content = content
      self.value = value
    }

    package var notifies: Bool { flags.contains(.notify) }
    package var indicates: Bool { flags.contains(.indicate) }
    package var isReadable: Bool { flags.contains(.read) }
    package var isWritable: Bool { flags.contains(.write) }
    package var takesCommands: Bool { flags.contains(.command) }

    /// The flags as bluetoothd names them.
    package var flagNames: [String] { Flag.allCases.filter(flags.contains).map(\.rawValue) }
  }

  /// The operations of a characteristic, in bluetoothd's terms and order (`chrc_prop_data` in `src/gatt-client.c`).
  package enum Flag: String, Sendable, Hashable, CaseIterable {
    case read
    /// Can be written without response.
    case command = "write-without-response"
    /// Can be written with response.
    case write
    case notify
    case indicate
  }

  /// A descriptor, whose value can be read.
  package struct Descriptor: Sendable, Hashable {
    package fileprivate(set) var handle: UInt16 = 0
    package var uuid: BluetoothUUID
    package var value: [UInt8]

    package init(_ uuid: BluetoothUUID, value: [UInt8]) {
      self.uuid = uuid
      self.value = value
    }
  }

  /// The maximum length of a value in ATT (Core Specification Vol 3, Part F, 3.2.9).
  package static let longestValue = 512

  /// How a characteristic's value is determined.
  package enum Content: Sendable, Equatable {
    /// The initial value, whatever is written.
    case fixed
    /// Like `fixed`, but read by bluetoothd itself while it resolves the services: its Value is known from the start.
    case fixedAndCached
    /// The last written value, which must have one of these lengths.
    case stored(ClosedRange<Int>)
    /// The last written value, of a length that the codec can decode.
    case coded(Codec)
    /// The micro:bit's LEDs, one byte per row: a shorter write clears the other rows.
    case rows
    case temperature
    case temperaturePeriod
    case acceleration
    case accelerationPeriod
    case magneticField
    case magnetometerPeriod
    case calibration
    /// Pairs of a pin and its value.
    case pins
    /// Button A or B, by its number.
    case button(UInt8)
    case event
    case eventFilter
    /// Requests for the data log, and replies.
    case dataLog

    /// Whether values are notified when they are measured, or a calibration or a reply is ready.
    package var isSampled: Bool {
      switch self {
      case .temperature, .acceleration, .magneticField, .calibration, .dataLog: true
      default: false
      }
    }
  }

  package let services: [Service]
  /// Device1.UUIDs after the services are resolved; sorted, as by bluetoothd.
  package let uuids: [String]

  /// Creates a database of these services, after the GATT service, which all peripherals have.
  ///
  /// Handles are assigned in this order: each service and each characteristic declaration has one, followed by those of
  /// its value and descriptors. A micro:bit with the temperature service gets the handles,
  /// and so the object paths, of the recordings.
  package init(_ own: [Service]) {
    var handle: UInt16 = 0x06
    func nextHandle() -> UInt16 {
      defer { handle += 1 }
      return handle
    }
    var services = [Self.attributes] + own
    for at in services.indices {
      services[at].handle = nextHandle()
      for position in services[at].characteristics.indices {
        services[at].characteristics[position].handle = nextHandle()
        _ = nextHandle()
        let characteristic = services[at].characteristics[position]
        if characteristic.notifies || characteristic.indicates {
          services[at].characteristics[position].descriptors.insert(Self.configuration, at: 0)
        }
        for descriptor in services[at].characteristics[position].descriptors.indices {
          services[at].characteristics[position].descriptors[descriptor].handle = nextHandle()
        }
      }
    }
    self.services = services
    uuids = Set(([.genericAccess] + services.map(\.uuid)).map(\.description)).sorted()
  }

  /// The client configuration: whether there are subscriptions is not simulated.
  private static let configuration = Descriptor(BluetoothUUID(short: 0x2902), value: [0, 0])

  package func characteristic(_ handle: UInt16) -> Characteristic? {
    for service in services {
      for characteristic in service.characteristics where characteristic.handle == handle {
        return characteristic
      }
    }
    return nil
  }

  package func descriptor(_ handle: UInt16) -> Descriptor? {
    services.lazy.flatMap(\.characteristics).flatMap(\.descriptors).first { $0.handle == handle }
  }

  /// The service of a characteristic.
  package func service(of handle: UInt16) -> Service? { services.last { $0.handle < handle } }

  /// The characteristic with this UUID and index (`instance`, from 0) among those with the same UUID; optionally of one
  /// service only.
  package func characteristic(
    _ uuid: BluetoothUUID, instance: Int = 0, in service: BluetoothUUID? = nil
  ) -> Characteristic? {
    let all = services.filter { service == nil || $0.uuid == service }.flatMap(\.characteristics)
    return all.filter { $0.uuid == uuid }.dropFirst(instance).first
  }

  /// Whether a characteristic requires no encryption: those of the GATT service and the device information.
  package func isOpen(_ handle: UInt16) -> Bool {
    [.genericAttribute, DeviceInformation.service].contains(service(of: handle)?.uuid)
  }
}

extension GATTDatabase {
  /// A peripheral that is not a micro:bit, with device information only.
  package static let decoy = GATTDatabase([information(model: "Decoy", serial: "0", firmware: "1.0")])

  private static let attributes = Service(
    .genericAttribute,
    [
      Characteristic(BluetoothUUID(short: 0x2A05), [.indicate], .fixed),
      // Written by bluetoothd; without effect here.
      Characteristic(BluetoothUUID(short: 0x2B29), [.read, .write], .fixed, value: [0]),
      Characteristic(
        BluetoothUUID(short: 0x2B2A), [.read], .fixedAndCached,
        value: [
          0x0E, 0x1C, 0x1F, 0xAD, 0x2B, 0x33, 0xE0, 0x8C, 0xE7, 0x65, 0x73, 0x23, 0xBD, 0xB6, 0xFD, 0x98,
        ]),
    ])

  package static func information(model: String, serial: String, firmware: String) -> Service {
    Service(
      DeviceInformation.service,
      [
        (DeviceInformation.modelNumber, model), (DeviceInformation.serialNumber, serial),
        (DeviceInformation.firmwareRevision, firmware),
      ].map { uuid, text in
        Characteristic(uuid, [.read], .fixed, value: Array(text.utf8))
      })
  }
}

extension BluetoothUUID {
  fileprivate static let genericAccess = BluetoothUUID(short: 0x1800)
  fileprivate static let genericAttribute = BluetoothUUID(short: 0x1801)
}
