import EventLoop
import GATT

/// A value for a property, from any front end.
package struct Command: Sendable {
  /// Checked and encoded for the property.
  let value: EncodedValue
  /// Nil: the value of a state waits without a limit; an event fails if the device is offline, unless it is connected
  /// on demand for it.
  var timeToLive: TimeToLive?
  /// Whether it waits if there is no link, or the link is lost.
  let waitsForLink: Bool
  let reply: CommandReply

  package init(
    _ value: EncodedValue, timeToLive: TimeToLive? = nil, waitsForLink: Bool = true,
    reply: @escaping CommandReply
  ) {
    self.value = value
    self.timeToLive = timeToLive
    self.waitsForLink = waitsForLink
    self.reply = reply
  }

  var expired: Outcome {
    .timeout(reason: "not applied within \(timeToLive?.seconds ?? 0) s")
  }
}

/// Gets at most one ``Outcome/pending``, and exactly one final outcome; called on the loop. Exception: if
/// another gateway that has the command too takes the device over, a waiting command is left to that gateway.
package typealias CommandReply = @Sendable (Outcome) -> Void

/// How long a command may wait to be carried out.
package struct TimeToLive: Sendable, Equatable {
  package let seconds: Int
  package let deadline: Moment

  /// - Parameter arrival: when the command arrived.
  package init(seconds: Int, from arrival: Moment) {
    self.seconds = seconds
    deadline = arrival + .seconds(seconds)
  }
}

/// The result of a command or a read.
package enum Outcome: Sendable, Equatable {
  /// The read-back equals the request.
  case applied(actual: Value)
  /// The device accepted the write and holds another value.
  case adjusted(actual: Value)
  /// The device acknowledged the write; nothing was read back.
  case accepted
  /// The write was given to the radio; nobody acknowledges it.
  case sent
  /// The device was read.
  case read(actual: Value)
  /// Refused before any write.
  case rejected(reason: String)
  /// The device is offline: the command is kept, and a second outcome follows.
  case pending
  /// A newer command replaced it before it was carried out.
  case superseded
  /// The write or the read-back failed, or the command will not be carried out any more.
  case failed(reason: String)
  /// The write or the read-back was not answered, or the time to live is over.
  case timeout(reason: String)
}

extension Outcome {
  /// Why a command fails that is unknown to the gateway that has taken the device over.
  package static let takenOverReason = "another gateway has taken the device over"

  /// The word in the `status` of a result.
  package var word: String {
    switch self {
    case .applied: "applied"
    case .adjusted: "adjusted"
    case .accepted: "accepted"
    case .sent: "sent"
    case .read: "read"
    case .rejected: "rejected"
    case .pending: "pending"
    case .superseded: "superseded"
    case .failed: "failed"
    case .timeout: "timeout"
    }
  }

  /// What the device holds, where it said so.
  package var actual: Value? {
    switch self {
    case .applied(let actual), .adjusted(let actual), .read(let actual): actual
    case .accepted, .sent, .rejected, .pending, .superseded, .failed, .timeout: nil
    }
  }

  package var reason: String? {
    switch self {
    case .rejected(let reason), .failed(let reason), .timeout(let reason): reason
    case .applied, .adjusted, .accepted, .sent, .read, .pending, .superseded: nil
    }
  }
}
