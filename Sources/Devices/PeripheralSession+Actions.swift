import BlueZ

extension PeripheralSession {
  enum Action: Sendable, Equatable {
    case connect
    /// Read, subscribe, then call ``PeripheralSession/subscribed(_:at:)``.
    case subscribe
    /// End the link, then call ``PeripheralSession/disconnectCompleted()``.
    case disconnect
    /// Delete what bluetoothd knows of it, bond and services, then call ``PeripheralSession/disconnectCompleted()``.
    case forget
    case online
    case offline
    case setTimer(Duration)
    case cancelTimer
    /// For the user, once for each kind of trouble in a row.
    case report(Trouble)
  }

  package enum Trouble: Sendable, Equatable {
    /// Connected, and it lacks what the profile requires.
    case unsuitable
    case connectFailed(String)
    /// Connected, and it cannot be used at all.
    case unusable(String)
    /// Its link ended, other than from this side, and perhaps why.
    case linkEnded(String?)
    case subscribeFailed(String)
    /// Its services are known, but no value can be read, on two links in a row.
    case wantsPairing
    /// The link ends as soon as a value is read, on several links in a row.
    case endsLinks
    /// Pairing failed, and is tried again.
    case pairingFailed(String)
    /// The peripheral has lost its bond. `pairsAgain`: whether the gateway pairs with it again.
    case bondLost(pairsAgain: Bool)
    /// Connected, and no reading for this long.
    case silent(Duration)
    /// An operation was not answered in time.
    case unresponsive
    /// The peripheral removed services that the profile requires, on a live link.
    case servicesLost
  }

  /// How an attempt to connect ended.
  enum Connection: Sendable {
    case connected
    /// Its services are not those of the profile.
    case unsuitable
    case failed(CentralError)
    case notPaired(PairingError)
  }
}

extension PeripheralSession.Trouble {
  /// Whether a request to pair may mend it.
  var wantsPairing: Bool {
    switch self {
    case .wantsPairing, .endsLinks, .bondLost(pairsAgain: false): true
    case .unsuitable, .unusable, .connectFailed, .linkEnded, .subscribeFailed, .pairingFailed,
      .bondLost(pairsAgain: true), .silent, .unresponsive, .servicesLost:
      false
    }
  }
}
