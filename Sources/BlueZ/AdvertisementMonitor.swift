import DBus

/// The monitor of advertisements (`org.bluez.AdvertisementMonitor1`) that bluetoothd is asked for.
///
/// A pure state machine. While there is a monitor, discovery reports each advertisement, whatever the monitor looks for:
/// it looks for what no advertisement has, for the reasons that docs/bluetoothd.md gives.
struct AdvertisementMonitor {
  /// A call to `org.bluez.AdvertisementMonitorManager1`.
  enum Step: String {
    case register = "RegisterMonitor"
    case unregister = "UnregisterMonitor"
  }

  /// The object that lists the monitor.
  static let root = "/microbit_gateway/monitors"
  private static let path = root + "/heard"

  /// Whether bluetoothd was asked for the monitor, and may have it.
  private(set) var isAsked = false
  /// The adapter was off since then: whether the kernel still has it is unknown.
  private var isStale = false
  private var isCalling = false
  /// Whether the kernel has the monitor.
  private(set) var isActive = false

  /// The call that is necessary now; ``ended()`` follows. What was refused is asked for again when the adapter or
  /// bluetoothd was off.
  /// - Parameters:
  ///   - isWanted: whether there are devices that are only heard.
  ///   - isOffered: whether bluetoothd has monitors.
  ///   - isOn: whether the adapter is on.
  mutating func next(isWanted: Bool, isOffered: Bool, isOn: Bool) -> Step? {
    if !isOffered { isAsked = false }
    guard isOffered, isOn else {
      (isActive, isStale) = (false, isAsked)
      return nil
    }
    // A stale one is unregistered; then the next call registers it again.
    guard !isCalling, isStale || isAsked != isWanted else { return nil }
    (isCalling, isActive, isStale) = (true, false, false)
    isAsked.toggle()
    return isAsked ? .register : .unregister
  }

  /// The call was answered, or not in time.
  mutating func ended() { isCalling = false }

  /// The reply to a call of bluetoothd; nil: there is no such method.
  mutating func answer(_ member: String) -> [DBusValue]? {
    switch member {
    case "GetManagedObjects": return [Self.objects]
    case "Activate": isActive = true
    case "Release": isActive = false
    default: return nil
    }
    return []
  }

  private static var objects: DBusValue {
    let monitor: DBusValue = .properties([
      "Type": .string("or_patterns"), "RSSISamplingPeriod": .uint16(0),
      // Position, type (3D Information Data, of BR/EDR), content.
      "Patterns": .array(of: "(yyay)", [.structure([.byte(0), .byte(0x3D), .bytes([0xFF])])]),
    ])
    return .objects([(path, .interfaces([(BlueZName.monitor, monitor)]))])
  }
}
