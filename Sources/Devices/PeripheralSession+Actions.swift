import BlueZ
import EventLoop
import GATT

extension PeripheralSession {
  /// What holds when an input arrives. Asked for each time, as the adapters own these facts.
  struct Snapshot: Sendable {
    var now: Moment
    /// Whether an attempt to connect may succeed.
    var isInRange = true
    /// Whether the peripheral's advertisements are received: a bonded one is in range even if they are not.
    var isReceived = true
    /// Whether bluetoothd has a bond with it.
    var isPaired = false
  }

  enum Action: Sendable, Equatable {
    /// Connect, then call ``PeripheralSession/connected(_:_:)``.
    case connect
    /// Read, subscribe, then call ``PeripheralSession/subscribed(_:_:)``.
    case subscribe
    /// End the link, then call ``PeripheralSession/disconnectCompleted(_:)``.
    case disconnect
    /// Delete what bluetoothd knows of it, bond and services, then call ``PeripheralSession/disconnectCompleted(_:)``.
    case forget
    /// Delete what bluetoothd knows of the peripheral, whatever else is in progress.
    case unpair
    case online
    case offline
    /// Tell the user of the trouble, once for each kind in a row.
    case report(Trouble)
  }

  package enum Trouble: Sendable, Equatable {
    /// The peripheral was connected to, and lacks what the profile requires.
    case unsuitable
    case connectFailed(String)
    /// The peripheral was connected to, and cannot be used at all.
    case unusable(String)
    /// The link ended, other than from this side, and perhaps why.
    case linkEnded(String?)
    case subscribeFailed(String)
    /// The services are known, but no value can be read, on two links in a row.
    case wantsPairing
    /// The link ends as soon as a value is read, on several links in a row.
    case endsLinks
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
  }

  /// How an attempt to connect ended.
  enum Connection: Sendable {
    case connected
    /// The peripheral's services are not those of the profile.
    case unsuitable
    case failed(CentralError)
    case notPaired(PairingError)
  }

  /// How subscribing ended.
  enum Subscription: Sendable {
    case subscribed
    case failed(CentralError)
    /// No value could be read, though the services are known and the link lasts.
    ///
    /// This happens if the peripheral requires pairing: bluetoothd 5.66 never answers the read, 5.82 fails it
    /// at once, and both keep the link (tested). One that no longer responds does the same once; on the next
    /// link its services are not resolved.
    case unreadable(CentralError)
  }
}

extension PeripheralSession.Trouble {
  /// Whether a request to pair may mend the trouble.
  var wantsPairing: Bool {
    switch self {
    case .wantsPairing, .endsLinks, .bondLost(pairsAgain: false): true
    case .unsuitable, .unusable, .connectFailed, .linkEnded, .subscribeFailed, .pairingFailed,
      .bondLost(pairsAgain: true), .silent, .unresponsive, .servicesLost,
      .unreadable:
      false
    }
  }
}
