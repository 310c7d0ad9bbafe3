import GATT

/// Names a peripheral for as long as bluetoothd runs. Opaque: what it is made of stays in this module.
public struct PeripheralID: Hashable, Sendable {
  let path: String
}

/// A peripheral as the adapter knows it.
public struct Peripheral: Sendable, Equatable {
  /// Stays the same from one connection to the next; void after ``CentralEvent/lost(_:)``.
  public let id: PeripheralID
  /// For a peripheral with a private address: its present one.
  public let address: BluetoothAddress
  /// As advertised: hostile text of any content and length; nil when none was heard.
  public let name: String?
  /// Signal strength in dBm of the last advertisement; nil when it is not being heard.
  public let rssi: Int?
  /// Whether the adapter is linked to it, whoever made the link.
  public let isConnected: Bool
  let isPaired: Bool
  /// The services that it advertised and, once it was connected, those that it has.
  public internal(set) var services: [BluetoothUUID] = []
  /// The Bluetooth SIG's numbers of the companies whose data it advertised, in ascending order.
  public internal(set) var manufacturers: [Int] = []

  var outOfRange: Peripheral {
    Peripheral(
      id: id, address: address, name: name, rssi: nil, isConnected: false, isPaired: false,
      services: services,
      manufacturers: manufacturers)
  }

  /// Whether an attempt to connect has a chance: it is heard, linked already, or known by a bond (bonded
  /// micro:bits may be there without being discoverable).
  public var isInReach: Bool { rssi != nil || isConnected || isPaired }
}

/// A characteristic of a connected peripheral. Valid until that connection ends.
public struct Characteristic: Sendable, Hashable {
  /// What kind it is; only with ``service`` does it name one.
  public let uuid: BluetoothUUID
  /// UUID of the service that it belongs to.
  public let service: BluetoothUUID
  /// As bluetoothd tells them; whether pairing is needed first they do not say.
  public let flags: Flags
  let path: String
  /// Tells it from an earlier one at the same path, which the peripheral has removed.
  let generation: Int
  let peripheral: PeripheralID

  /// What the characteristic says can be done with it (GATT characteristic properties, Core Specification
  /// Vol 3, Part G, 3.3.1.1).
  public struct Flags: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// A bit for each name here, in an order of our own: not the byte that goes over the air.
    public let rawValue: UInt8
    /// For `OptionSet`: bits without a name here mean nothing.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Its value can be asked for.
    public static let read = Flags(rawValue: 1 << 0)
    /// It takes writes that the peripheral answers.
    public static let write = Flags(rawValue: 1 << 1)
    /// It takes writes that the peripheral does not answer.
    public static let writeWithoutResponse = Flags(rawValue: 1 << 2)
    /// Its values come by themselves, unacknowledged.
    public static let notify = Flags(rawValue: 1 << 3)
    /// Its values come by themselves, the next when the last is acknowledged; subscribed to like ``notify``.
    public static let indicate = Flags(rawValue: 1 << 4)

    private static let named: KeyValuePairs<String, Flags> = [
      "read": .read, "write": .write, "write-without-response": .writeWithoutResponse, "notify": .notify,
      "indicate": .indicate,
    ]

    /// - Parameter names: BlueZ's `Flags`; those that say nothing to a central are passed over.
    init(names: [String]) {
      self = []
      for (name, flag) in Self.named where names.contains(name) { insert(flag) }
    }

    /// BlueZ's names of them.
    public var description: String {
      Self.named.filter { contains($0.value) }.map(\.key).joined(separator: ",")
    }
  }
}

/// The state of the way to the air, from the bus to the adapter.
public enum CentralState: Sendable, Equatable {
  /// No D-Bus, and why.
  case noBus(String)
  /// Another gateway works with the adapter, and nothing is asked of bluetoothd until that has ended; its process,
  /// where that is known.
  case adapterInUse(by: Int32?)
  /// The bus is there, bluetoothd is not.
  case noBluetoothd
  /// bluetoothd is there, the adapter is not.
  case adapterAbsent
  /// The adapter is powered down.
  case adapterOff
  /// The adapter is held off by rfkill: nobody can power it up before it is unblocked.
  case adapterBlocked
  /// Ready, under this name (`hci0`) and address.
  case on(adapter: String, address: String)

  /// Whether peripherals can be looked for and connected to.
  public var isOn: Bool {
    if case .on = self { true } else { false }
  }
}

/// What a central tells its owner, on the loop.
public enum CentralEvent: Sendable {
  /// Told when it is another than the last one told.
  case state(CentralState)
  /// A peripheral was seen for the first time, or something about it changed (name, signal, link).
  case seen(Peripheral)
  /// The link ended: by the peripheral, by its being out of reach, by the adapter, by bluetoothd's end.
  case disconnected(PeripheralID)
  /// The peripheral has changed its services on a link that goes on (Service Changed, Core Specification Vol 3, Part G,
  /// 7.1): these are its characteristics now. Those that are not among them any more are void.
  case servicesChanged(PeripheralID, [Characteristic])
  /// bluetoothd has forgotten the peripheral; it can only come back by being seen again.
  case lost(PeripheralID)
}
