import Configuration
import Devices
import GATT
import JSON

/// Which gateway owns a device, and so writes its retained topics: the one that has its link, or was the last to have it.
///
/// A pure machine. It follows the other gateways by the device's retained `info`.
struct DeviceOwnership: Equatable, Sendable {
  /// What follows from the `info` of another gateway.
  enum Action: Equatable, Sendable {
    /// The other owns it: publish nothing about the device any more.
    case release
    /// This one owns it: publish that again.
    case republish
  }

  private(set) var owner = Owner.unknown
  private let this: GatewayID
  /// The last one that another gateway has published.
  private(set) var last: Notice?

  init(_ this: GatewayID) {
    self.this = this
  }

  var isElsewhere: Bool {
    switch owner {
    case .other: true
    case .unknown, .this: false
    }
  }

  /// What a device's `info` says of its owner.
  struct Notice: Equatable, Sendable {
    let gateway: GatewayID
    var area: String?
    /// Nil: it has no link now. RFC 3339, UTC with milliseconds: such texts sort as they follow one another.
    var connectedSince: String?
    /// The desired values, by property.
    var desired: JSONObject?
    /// Which device it is about; nil: it does not say.
    var identifier: BluetoothAddress?
  }

  /// The device is online here.
  /// - Returns: whether it was elsewhere before, as ``last`` tells.
  mutating func cameOnline() -> Bool {
    defer { owner = .this }
    return isElsewhere
  }

  /// The retained `info` has come, of whatever gateway; nil: it was taken away.
  /// - Parameter liveSince: since when the device is live here; nil when it is not.
  mutating func received(_ notice: Notice?, liveSince: String?) -> Action? {
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
    if let liveSince, liveSince >= notice.connectedSince ?? "" { return .republish }
    last = notice
    owner = .other(notice.gateway)
    return .release
  }
}
