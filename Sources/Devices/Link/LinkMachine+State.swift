import BlueZ
import Configuration
import EventLoop

extension LinkMachine {
  /// When the adapter goes, all but `connecting`, `leaving`, `idle` and `stopped` → absent. Every state → stopped.
  enum State: Sendable, Equatable {
    /// Out of range, or there is no adapter → connecting when it is in range, waiting if it is bonded and not received,
    /// idle.
    case absent
    /// An attempt failed or a link ended; the back-off runs → connecting, absent, leaving, idle.
    ///
    /// `wakesOnAdvertisement`: it is tried sooner if it is received.
    case waiting(until: Moment, wakesOnAdvertisement: Bool)
    /// The device is in the queue for the adapter, or being connected and resolved → subscribing, awaitingServices, waiting,
    /// leaving, absent, idle.
    ///
    /// `isWithdrawn`: on demand, and another gateway has visited it meanwhile; the link is ended as soon as it is made.
    case connecting(isWithdrawn: Bool)
    /// Linked, and it lacks services that the profile requires but may add → subscribing, waiting, leaving, absent.
    case awaitingServices(until: Moment, lacks: Lacks)
    /// Linked; first values are read and notifications requested → live, leaving, waiting, absent.
    case subscribing
    /// Readings arrive → leaving when they stop, waiting when the link ends.
    ///
    /// `checkAt`: when to see whether there were any; nil: the link alone keeps it alive.
    case live(checkAt: Moment?)
    /// The link is being ended from this side → waiting, idle.
    ///
    /// `thenWait`: before the next attempt; nil: until a link is demanded.
    case leaving(thenWait: Duration?)
    /// Connected on demand, and there is no demand → connecting or absent when there is.
    case idle
    /// The gateway stops, or the device is disabled or removed. Final.
    case stopped

    var published: SessionState {
      switch self {
      case .absent: .absent
      case .waiting: .waiting
      case .connecting, .awaitingServices: .connecting
      case .subscribing: .subscribing
      case .live: .live
      case .leaving: .leaving
      case .idle: .idle
      case .stopped: .stopped
      }
    }

    /// When the state ends by itself.
    var deadline: Moment? {
      switch self {
      case .waiting(let deadline, _), .awaitingServices(let deadline, _): deadline
      case .live(let checkAt): checkAt
      case .absent, .connecting, .subscribing, .leaving, .idle, .stopped: nil
      }
    }

    var isLive: Bool { if case .live = self { true } else { false } }

    /// Whether there is a link that is neither being made nor being ended.
    var isInUse: Bool {
      switch self {
      case .awaitingServices, .subscribing, .live: true
      case .absent, .waiting, .connecting, .leaving, .idle, .stopped: false
      }
    }

    /// Whether there is a link, or it is being made or ended.
    var occupiesLink: Bool {
      switch self {
      case .connecting, .leaving: true
      case .absent, .waiting, .awaitingServices, .subscribing, .live, .idle, .stopped: isInUse
      }
    }
  }

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

  enum Input: Sendable {
    /// What the adapters know of the peripheral has changed.
    case rangeChanged
    /// The adapter of the link, or of the last one, is absent or off.
    case adapterWentAway
    /// The ``LinkMachine/deadline`` is reached.
    case deadline

    /// The action `connect` has ended, or the services that were awaited have come.
    case connected(Connection)
    /// The action `subscribe` has ended.
    case subscribed(Subscription)
    /// The link has been ended from this side.
    case disconnectCompleted

    /// The link has ended.
    case disconnected(reason: String?)
    /// An operation on the live link was not answered in time.
    case unresponsive
    /// The peripheral has removed what the profile requires, or bluetoothd has lost it: the next link shows which.
    case servicesLost
    /// The peripheral has changed its services so that it must not be used: the link is ended, and a bond deleted.
    case unusable(String)
    /// Whether the link offers the readings that keep it alive.
    case readingsExpected(Bool)
    /// The peripheral sends a reading in this period from its next sample on.
    case period(Duration)

    /// Another gateway has the device now: the link here is no longer alive.
    case handedOver
    /// A device that is connected on demand is due for a visit, or a command waits for it.
    case demanded
    /// Everything that was to be done on a link on demand is done.
    case visitEnded
    /// Another device gets the link; this one waits for another link.
    case turnEnded
    /// A user requests a new link, now.
    case reconnect
    /// A user requests pairing, on a new link, before it is used; this mode is configured.
    case pair(Configuration.PairingMode)
    /// A user requests that the bond be deleted. From then on the gateway does not pair by itself.
    case unpair
    case stop
  }

  /// How an attempt to connect ended.
  enum Connection: Sendable {
    case connected
    /// The peripheral's services are not those of the profile: see ``Trouble/unsuitable(lacks:)``.
    case unsuitable(lacks: Lacks)
    case failed(CentralError)
    case notPaired(PairingError)
  }

  /// How subscribing ended.
  enum Subscription: Sendable {
    case subscribed
    case failed(CentralError)
    /// No value could be read, though the services are known and the link lasts.
    ///
    /// No value can be read if the peripheral requires pairing: bluetoothd 5.66 never answers the read, 5.82 fails it
    /// at once, and both keep the link (tested). One that no longer responds does the same once; on the next
    /// link its services are not resolved.
    case unreadable(CentralError)
  }

  enum Action: Sendable, Equatable {
    /// Connect; the input ``Input/connected(_:)`` follows.
    case connect
    /// Read and subscribe; the input ``Input/subscribed(_:)`` follows.
    case subscribe
    /// End the link; the input ``Input/disconnectCompleted`` follows.
    case disconnect
    /// Delete what bluetoothd knows of it, bond and services; the input ``Input/disconnectCompleted`` follows.
    case forget
    /// Delete what bluetoothd knows of the peripheral, whatever else is in progress.
    case unpair
    case online
    case offline
    /// Tell the user of the trouble, once for each kind in a row.
    case log(Trouble)
  }
}
