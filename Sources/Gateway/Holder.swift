import Configuration
import GATT

/// Who writes the retained topics of a device: the gateway that has its link, or was the last to have it.
///
/// A pure machine. What the others do it hears from the device's retained `info`.
struct Holder: Equatable, Sendable {
  enum Party: Equatable, Sendable {
    /// No gateway has had the device yet, as far as the broker remembers.
    case nobody
    case this
    case other(GatewayID)
  }

  /// What the `info` of another gateway asks this one to do.
  enum Action: Equatable, Sendable {
    /// The other has it: say no more about the device.
    case standBy
    /// This one has it: say so again.
    case sayAgain
  }

  private(set) var party = Party.nobody
  private let this: GatewayID
  /// What the last other holder has said.
  private(set) var last: Notice?

  init(_ this: GatewayID) {
    self.this = this
  }

  var isElsewhere: Bool {
    switch party {
    case .other: true
    case .nobody, .this: false
    }
  }

  /// What a device's `info` says of its holder.
  struct Notice: Equatable, Sendable {
    let gateway: GatewayID
    var area: String?
    /// Nil: it has no link now. RFC 3339, UTC with milliseconds: such texts sort as they follow one another.
    var connectedSince: String?
    /// The values that are wanted of it, by property.
    var wanted: [String: Int] = [:]
    /// Which device it is about; nil: it does not say.
    var identifier: BluetoothAddress?
  }

  /// The device is live here.
  /// - Returns: whether it was elsewhere before, as ``last`` tells.
  mutating func wentLive() -> Bool {
    defer { party = .this }
    return isElsewhere
  }

  /// The retained `info` has come, of whatever gateway; nil: it was taken away.
  /// - Parameter liveSince: since when the device is live here; nil when it is not.
  mutating func heard(_ notice: Notice?, liveSince: String?) -> Action? {
    guard let notice else {
      if liveSince != nil { return .sayAgain }
      if isElsewhere { party = .nobody }
      return nil
    }
    guard notice.gateway != this else {
      // An echo, or the word of an earlier run.
      if case .nobody = party { party = .this }
      return nil
    }
    if let liveSince, liveSince >= notice.connectedSince ?? "" { return .sayAgain }
    last = notice
    party = .other(notice.gateway)
    return .standBy
  }
}
