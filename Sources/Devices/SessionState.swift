import EventLoop

/// The state of a session as it is published.
package enum SessionState: String, Sendable {
  case absent, waiting, connecting, subscribing, live, leaving, idle, listening, stopped

  /// Whether values that arrive are readings.
  var isReceiving: Bool {
    switch self {
    case .subscribing, .live, .listening: true
    case .absent, .waiting, .connecting, .leaving, .idle, .stopped: false
    }
  }
}

extension PeripheralSession {
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
    case awaitingServices(until: Moment)
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
      case .waiting(let deadline, _), .awaitingServices(let deadline): deadline
      case .live(let checkAt): checkAt
      case .absent, .connecting, .subscribing, .leaving, .idle, .stopped: nil
      }
    }

    var isLive: Bool { if case .live = self { true } else { false } }

    /// Whether there is a link, or it is being made or ended.
    var occupiesLink: Bool {
      switch self {
      case .connecting, .awaitingServices, .subscribing, .live, .leaving: true
      case .absent, .waiting, .idle, .stopped: false
      }
    }
  }
}
