import Configuration
import Devices
import GATT
import JSON

/// Which gateway owns a device and so writes its retained topics: the one that has its link, or had it last.
///
/// A pure machine. It follows the other gateways by the device's retained `info`.
struct DeviceOwnership: Equatable, Sendable {
  enum Action: Equatable, Sendable {
    /// Another gateway owns it: publish nothing about the device any more.
    case release
    /// This gateway owns it: publish that again.
    case republish
  }

  private(set) var owner = Owner.unknown
  private let this: GatewayID
  /// The last one of another gateway.
  private(set) var last: Notice?
  /// Whether ``last`` names a link, or a visit, that the notice before did not.
  private(set) var hasNewLink = false

  init(_ this: GatewayID) {
    self.this = this
  }

  var isElsewhere: Bool {
    switch owner {
    case .other: true
    case .unknown, .this: false
    }
  }

  /// The owner, as in a device's `info`.
  struct Notice: Equatable, Sendable {
    let gateway: GatewayID
    var area: String?
    /// The begin of its link, or of its last visit; nil while it is offline. RFC 3339, UTC with milliseconds, which
    /// sorts by time.
    var liveSince: String?
    /// The properties that are used there.
    var properties: Set<String> = []
    /// The desired values, by property.
    var desired: JSONObject?
    /// Those of them that no command or request has set.
    var configured: Set<String> = []
    /// A user has deleted the device in Home Assistant.
    var isDeleted = false
    /// The device's address, if it is given.
    var address: BluetoothAddress?
  }

  /// The device is online here.
  /// - Returns: whether another gateway owned it (``last``).
  mutating func cameOnline() -> Bool {
    defer { owner = .this }
    return isElsewhere
  }

  /// The retained `info` has arrived, from any gateway; nil: it was cleared.
  /// - Parameters:
  ///   - liveSince: since when the device is live here; nil when it is not.
  ///   - keepsOwner: whether another gateway that has visited it keeps it, though this one has, later: of devices that
  ///     are connected on demand, before this gateway has published anything.
  mutating func received(_ notice: Notice?, liveSince: String?, keepsOwner: Bool = false) -> Action? {
    guard let notice else {
      if liveSince != nil { return .republish }
      if isElsewhere { owner = .unknown }
      return nil
    }
    guard notice.gateway != this else {
      // This gateway's own, perhaps of an earlier run.
      if case .unknown = owner { owner = .this }
      return nil
    }
    let isNew =
      notice.liveSince != nil
      && (notice.gateway != last?.gateway || notice.liveSince != last?.liveSince)
    // The id decides between two that are as new.
    if let liveSince, !(keepsOwner && isNew),
      (liveSince, this.description) > (notice.liveSince ?? "", notice.gateway.description)
    {
      return .republish
    }
    last = notice
    hasNewLink = isNew
    owner = .other(notice.gateway)
    return .release
  }
}
