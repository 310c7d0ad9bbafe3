import EventLoop
import GATT

/// Identifies a peripheral until bluetoothd ends. Opaque: object paths stay in this module.
public struct PeripheralID: Hashable, Sendable {
  package let path: String
}

/// A peripheral as the adapter knows it.
public struct Peripheral: Sendable, Equatable {
  /// An id that is the same for every connection; invalid after ``CentralEvent/lost(_:)``.
  public let id: PeripheralID
  /// That of ``id``; of a peripheral with private addresses the identity address, once bluetoothd has a bond with it.
  public package(set) var address: BluetoothAddress
  /// Whether the address that bluetoothd tells is a public one, which never changes.
  public internal(set) var hasPublicAddress = false
  /// The advertised name: untrusted text of any content and length; nil if none was received.
  public internal(set) var name: String?
  /// Signal strength in dBm of the last advertisement; nil while none is received.
  public internal(set) var rssi: Int?
  /// Whether the adapter is connected to the peripheral, by any program.
  public internal(set) var isConnected = false
  /// Whether bluetoothd has a bond with the peripheral, which may have lost its part.
  public internal(set) var isPaired = false
  /// The services that it advertised and, once it was connected, those that it has.
  public internal(set) var services: [BluetoothUUID] = []
  /// What else the peripheral advertised.
  public var advertised = AdvertisedData()

  /// The number of the last advertisement that bluetoothd has reported with a signal strength. Each number is used once
  /// for all peripherals of a central: the next one is another one, also if bluetoothd has removed the peripheral, or was
  /// restarted meanwhile.
  public internal(set) var lastAdvertisement = 0
  /// The numbers of the last signals with data of the peripheral's advertisements, changed or not, like
  /// ``lastAdvertisement``.
  public internal(set) var lastReports = AdvertisedData.Reports()
  /// The central has removed it from bluetoothd, which has not found it again yet.
  public internal(set) var isRemoved = false

  /// The peripheral as reported when the central has removed it.
  var removed: Peripheral {
    Peripheral(
      id: id, address: address, name: name, services: services, advertised: advertised, isRemoved: true)
  }

  /// Whether a connection attempt may succeed: it is advertising, connected, or bonded (bonded micro:bits may be in
  /// range without being discoverable).
  public var isInRange: Bool { rssi != nil || isConnected || isPaired }
}

/// The data of a peripheral's advertisements, as far as bluetoothd passes it on: untrusted bytes.
public struct AdvertisedData: Sendable, Equatable {
  /// What was reported last of each kind of data; 0: nothing.
  public struct Reports: Sendable, Equatable {
    /// The number of the last report of manufacturer data.
    public internal(set) var manufacturerData = 0
    /// The number of the last report of service data.
    public internal(set) var serviceData = 0
    /// No data was reported.
    public init() {}
  }

  /// Manufacturer data by company identifier.
  public internal(set) var manufacturerData: [Int: [UInt8]] = [:]
  /// Service data by service.
  public var serviceData: [BluetoothUUID: [UInt8]] = [:]
  /// The AD type Flags; empty if there were none.
  public internal(set) var flags: [UInt8] = []
  /// Further data by AD type: what bluetoothd does not evaluate.
  public internal(set) var other: [Int: [UInt8]] = [:]
}

/// A descriptor of a characteristic. Valid until the connection ends.
public struct Descriptor: Sendable, Equatable {
  /// The descriptor's type.
  public let uuid: BluetoothUUID
  let path: String
}

/// A characteristic of a connected peripheral. Valid until that connection ends.
public struct Characteristic: Sendable, Hashable {
  /// The characteristic's type, which identifies it only together with ``service``.
  public let uuid: BluetoothUUID
  /// UUID of the service that it belongs to.
  public let service: BluetoothUUID
  /// The flags as reported by bluetoothd, which do not say whether pairing is required.
  public let flags: Flags
  let path: String
  /// Distinguishes it from an earlier one at the same path, which the peripheral has removed.
  let generation: Int
  let peripheral: PeripheralID

  /// Whether writes to the characteristic may replace the firmware; ``Central`` refuses them.
  public var isFirmwareUpdate: Bool {
    FirmwareUpdate.services.contains(service) || FirmwareUpdate.characteristics.contains(uuid)
  }

  /// The operations that the characteristic supports (GATT characteristic properties, Core Specification Vol 3, Part G,
  /// 3.3.1.1).
  public struct Flags: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// One bit for each name below, in an order of our own: not the byte that is sent over the air.
    public let rawValue: UInt8
    /// Required by `OptionSet`: bits without a name are ignored.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The value can be read.
    public static let read = Flags(rawValue: 1 << 0)
    /// Writes with response are accepted.
    public static let write = Flags(rawValue: 1 << 1)
    /// Writes without response are accepted.
    public static let writeWithoutResponse = Flags(rawValue: 1 << 2)
    /// Values are sent unacknowledged.
    public static let notify = Flags(rawValue: 1 << 3)
    /// Values are sent acknowledged; subscribed to like ``notify``.
    public static let indicate = Flags(rawValue: 1 << 4)

    private static let named: KeyValuePairs<String, Flags> = [
      "read": .read, "write": .write, "write-without-response": .writeWithoutResponse, "notify": .notify,
      "indicate": .indicate,
    ]

    /// - Parameter names: BlueZ's `Flags`; unknown ones are ignored.
    init(names: [String]) {
      self = []
      for (name, flag) in Self.named where names.contains(name) { insert(flag) }
    }

    /// BlueZ's names of the flags.
    public var description: String {
      Self.named.filter { contains($0.value) }.map(\.key).joined(separator: ",")
    }
  }
}

/// The state of the Bluetooth stack, from the bus to the adapter.
public enum CentralState: Sendable, Equatable {
  /// No connection to D-Bus, and why.
  case noBus(String)
  /// Another gateway holds the adapter's lock; its process id, if known. Nothing is sent to bluetoothd until that
  /// gateway has ended.
  case adapterInUse(by: Int32?)
  /// bluetoothd is not running.
  case noBluetoothd
  /// bluetoothd is running, but does not list its objects.
  case noAnswer
  /// The policy of the bus does not let this user call bluetoothd.
  case unauthorized
  /// bluetoothd is running, but the adapter is absent.
  case adapterAbsent
  /// The adapter has no Bluetooth LE.
  case adapterUnsupported
  /// The adapter is powered off.
  case adapterOff
  /// The adapter is blocked by rfkill, and cannot be powered on before it is unblocked.
  case adapterBlocked
  /// Ready, with this name (`hci0`) and address.
  case on(adapter: String, address: String)

  /// Whether scanning and connecting are possible.
  public var isOn: Bool {
    if case .on = self { true } else { false }
  }
}

/// An event of a central.
public enum CentralEvent: Sendable {
  /// The state differs from the last reported one, or a reset has left the adapter off.
  case state(CentralState)
  /// ``Central/recovery`` has begun, has taken its next step, or has ended.
  case recovery
  /// A peripheral was seen for the first time, or its name, signal strength, link or other data changed.
  case seen(Peripheral)
  /// The link ended, and why, which BlueZ tells from 5.83 on.
  case disconnected(PeripheralID, reason: String?)
  /// The peripheral has changed its services while connected (Service Changed, Core Specification Vol 3, Part G, 7.1):
  /// these are its characteristics now. Earlier ones that are not among them are invalid.
  case servicesChanged(PeripheralID, [Characteristic])
  /// The peripheral has changed its services so that it must not be used, and why: see ``Central/isRefused(_:)``.
  case unusable(PeripheralID, String)
  /// bluetoothd has removed the peripheral; it is valid again once it is seen again.
  case lost(PeripheralID)
}
