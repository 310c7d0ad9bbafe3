import GATT

/// Why a device has no link, or nothing of it can be used.
package enum Trouble: Sendable, Equatable {
  /// The peripheral was connected to, and lacks what the profile needs.
  case unsuitable(lacks: Lacks)
  case connectFailed(String)
  /// The peripheral was connected to, and cannot be used at all.
  case unusable(String)
  /// The link ended, other than from this side, and perhaps why.
  case linkEnded(String?)
  case subscribeFailed(String)
  /// The services are known, but on two links in a row no value can be read, or several end as soon as one is read.
  case wantsPairing
  /// Pairing failed, and is tried again.
  case pairingFailed(String)
  /// The peripheral has lost its bond. `pairsAgain`: whether the gateway pairs with it again.
  case bondLost(pairsAgain: Bool)
  /// The link had no reading for this long.
  case silent(Duration)
  /// An operation was not answered in time.
  case unresponsive
  /// The peripheral removed services that the profile requires, on a live link.
  case servicesLost
  /// What the device advertises cannot be read.
  case unreadable(BTHome.Obstacle)

  /// Whether a request to pair may mend the trouble.
  var wantsPairing: Bool {
    switch self {
    case .wantsPairing, .bondLost(pairsAgain: false): true
    case .unsuitable, .unusable, .connectFailed, .linkEnded, .subscribeFailed, .pairingFailed,
      .bondLost(pairsAgain: true), .silent, .unresponsive, .servicesLost, .unreadable:
      false
    }
  }
}

/// What a peripheral lacks of its profile: services that it requires, else all of its properties.
package struct Lacks: Sendable, Equatable, ExpressibleByArrayLiteral {
  package let services: [BluetoothUUID]
  /// The properties, each with the cause; empty where a service is missing, or nothing is known.
  package let properties: [String]

  package init(services: [BluetoothUUID], properties: [String] = []) {
    self.services = services
    self.properties = services.isEmpty ? properties : []
  }

  package init(arrayLiteral services: BluetoothUUID...) { self.init(services: services) }

  /// A property and why it cannot be used.
  package static func text(_ property: String, _ reason: String) -> String { "\(property) (\(reason))" }
}
