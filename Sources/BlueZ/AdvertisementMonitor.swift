import DBus
import GATT

/// The monitor of advertisements (`org.bluez.AdvertisementMonitor1`) that bluetoothd runs for a central.
///
/// A pure state machine. While there is a monitor, the kernel lets the controller report each advertisement, also during
/// discovery, which alone reports each peripheral about every 10 s.
struct AdvertisementMonitor {
  /// A call to `org.bluez.AdvertisementMonitorManager1`.
  enum Step: String {
    case register = "RegisterMonitor"
    case unregister = "UnregisterMonitor"
  }

  /// The object that lists the monitor.
  static let root = "/microbit_gateway/monitors"
  private static let path = root + "/heard"

  /// bluetoothd (5.66 to 5.86) counts the bytes of its command to the kernel in 8 bits, and with 8 patterns writes beyond
  /// its memory. Discovery reports the rest, each advertisement too.
  static let mostPatterns = 7

  /// The data to be heard; empty: no monitor is needed.
  var sources: Set<Property.Source.Data> = []
  /// What bluetoothd was asked to monitor last; empty: nothing since it has started or was asked to end it.
  private var asked: Set<Property.Source.Data> = []
  /// The adapter was off since then: whether the kernel still monitors is unknown.
  private var isStale = false
  private var isCalling = false
  /// Whether the kernel monitors.
  private(set) var isActive = false

  /// Whether bluetoothd was asked to monitor.
  var isAsked: Bool { !asked.isEmpty }

  /// The call that is necessary now; ``ended()`` follows. What was refused is asked again when something has changed.
  /// - Parameters:
  ///   - isOffered: whether bluetoothd has monitors.
  ///   - isOn: whether the adapter is on.
  mutating func next(isOffered: Bool, isOn: Bool) -> Step? {
    if !isOffered { asked = [] }
    guard isOffered, isOn else {
      (isActive, isStale) = (false, isAsked)
      return nil
    }
    guard !isCalling, isStale || asked != sources else { return nil }
    isCalling = true
    isStale = false
    if isAsked {
      (asked, isActive) = ([], false)
      return .unregister
    }
    asked = sources
    return .register
  }

  /// The call was answered, or not in time.
  mutating func ended() { isCalling = false }

  /// The reply to a call of bluetoothd; nil: there is no such method.
  mutating func answer(_ member: String) -> [DBusValue]? {
    switch member {
    case "GetManagedObjects": return [objects]
    case "Activate": isActive = true
    case "Release": isActive = false
    case "DeviceFound", "DeviceLost": break
    default: return nil
    }
    return []
  }

  private var objects: DBusValue {
    let patterns = Set(asked.map(\.pattern)).sorted { $0.lexicographicallyPrecedes($1) }
    let monitor: DBusValue = .properties([
      "Type": .string("or_patterns"),
      // Otherwise bluetoothd calls DeviceFound for each advertisement.
      "RSSISamplingPeriod": .uint16(0),
      "Patterns": .array(
        of: "(yyay)",
        patterns.prefix(Self.mostPatterns).map {
          .structure([.byte(0), .byte($0[0]), .bytes(Array($0.dropFirst()))])
        }),
    ])
    let interfaces = DBusValue.dictionary(
      key: "s", value: "a{sv}", [.init(.string(BlueZName.monitor), monitor)])
    return .dictionary(
      key: "o", value: "a{sa{sv}}", isAsked ? [.init(.objectPath(Self.path), interfaces)] : [])
  }
}

extension Property.Source.Data {
  /// How this data begins in an advertisement: its type (Assigned Numbers, 2.3), and the number of service or company.
  var pattern: [UInt8] {
    switch self {
    case .manufacturer(let company): [0xFF] + bytes(UInt16(truncatingIfNeeded: company))
    case .service(let uuid):
      switch uuid.short {
      case nil: [0x21] + bytes(uuid.low) + bytes(uuid.high)
      case let short? where short > 0xFFFF: [0x20] + bytes(short)
      case let short?: [0x16] + bytes(UInt16(short))
      }
    }
  }

  private func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian, Array.init)
  }
}
