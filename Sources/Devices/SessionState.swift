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
