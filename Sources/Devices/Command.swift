import Configuration
import EventLoop
import GATT
import JSON

/// A value for a property, from any front end: see ``DeviceManager/execute(_:reply:)``.
package struct Command: Sendable {
  let device: DeviceID
  let property: String
  /// The value as the sender wrote it: see ``Property/value(ofCommand:)``.
  let value: JSONValue
  /// Nil: the value of a state waits without a limit; an event fails if the device is offline,
  /// unless it is connected on demand for it.
  let timeToLive: TimeToLive?
  /// Stored with a command that waits, and given to ``DeviceObserver/answer(_:to:)`` if it ends in a later
  /// run; nil: nobody waits for that.
  package let sender: JSONValue?

  /// - Parameter ttl: the time to live, from now, in seconds.
  package init(
    _ device: DeviceID, _ property: String, _ value: JSONValue, ttl: Int? = nil, sender: JSONValue? = nil
  ) {
    self.device = device
    self.property = property
    self.value = value
    timeToLive = ttl.map { TimeToLive(seconds: $0, from: .now) }
    self.sender = sender
  }
}

/// What has become of a command or a read.
package struct CommandResult: Sendable {
  /// The property's name.
  package let property: String
  /// The property's codec; nil if the device has no such property (any more).
  package let codec: Codec?
  /// The value that was to be set; nil for a read.
  package let requested: Value?
  package let outcome: Outcome

  package init(_ property: Property, requested: Value? = nil, _ outcome: Outcome) {
    self.init(property.name, property.codec, requested: requested, outcome)
  }

  package init(_ property: String, _ codec: Codec?, requested: Value? = nil, _ outcome: Outcome) {
    self.property = property
    self.codec = codec
    self.requested = requested
    self.outcome = outcome
  }
}

/// Called at most once with ``Outcome/pending``, then once with the final outcome, or with
/// ``Outcome/deferred`` if the gateway stops before. Exception: if another gateway that has the command too takes the
/// device over, a waiting command is left to that gateway.
package typealias CommandReply = @LoopActor (CommandResult) -> Void

/// A command that is checked and encoded for its property: what a ``WriteMachine`` gets.
struct EncodedCommand: Sendable {
  let value: EncodedValue
  var timeToLive: TimeToLive?
  /// Whether the command waits if there is no link, or the link is lost.
  var waitsForLink = true
  /// See ``Command/sender``.
  var sender: JSONValue?
  /// Whether its sender knows that it is ``Outcome/pending``.
  var isPendingReported = false
  /// Whether it sends a value that a program names: observers are told of that one.
  var isNamedValue = false
  let reply: @LoopActor (Outcome) -> Void

  /// Whether the command waits longer than the gateway runs.
  var outlivesRun: Bool { waitsForLink && timeToLive == nil }

  var expired: Outcome {
    .timeout(reason: "not applied within \(timeToLive?.seconds ?? 0) s")
  }
}

/// How long a command may wait to be carried out.
struct TimeToLive: Sendable, Equatable {
  let seconds: Int
  /// When the command arrived.
  let arrival: Moment
  var deadline: Moment { arrival + .seconds(seconds) }

  init(seconds: Int, from arrival: Moment) {
    (self.seconds, self.arrival) = (seconds, arrival)
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
  /// The device is offline: the command is kept, and another outcome follows.
  case pending
  /// The gateway stops: the command is kept, and another outcome follows after the next start.
  case deferred
  /// A newer command replaced it before it was carried out.
  case superseded
  /// The write or the read-back failed, or the command will not be carried out any more.
  case failed(reason: String)
  /// The write or the read-back was not answered, or the time to live is over.
  case timeout(reason: String)
}

extension Outcome {
  /// A command fails that is unknown to the gateway that has taken the device over.
  /// - Parameter isDesiredThere: whether that gateway applies its value nevertheless.
  package static func takenOver(isDesiredThere: Bool = false) -> Outcome {
    .failed(reason: takenOverReason + (isDesiredThere ? ", and applies the value" : ""))
  }
  static let takenOverReason = "another gateway has taken the device over"
  static let lostInWrite = Outcome.timeout(
    reason: "the link was lost during the write: it may have taken effect")
  /// A command is given up while it is being written.
  static func abandonedInWrite(_ reason: String) -> Outcome {
    .timeout(reason: "\(reason): the write may have taken effect")
  }

  /// Whether what was asked for was done.
  package var isSuccess: Bool {
    switch self {
    case .applied, .adjusted, .accepted, .sent, .read: true
    case .rejected, .pending, .deferred, .superseded, .failed, .timeout: false
    }
  }

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
    case .deferred: "deferred"
    case .superseded: "superseded"
    case .failed: "failed"
    case .timeout: "timeout"
    }
  }

  /// What the device holds, where it said so.
  package var actual: Value? {
    switch self {
    case .applied(let actual), .adjusted(let actual), .read(let actual): actual
    case .accepted, .sent, .rejected, .pending, .deferred, .superseded, .failed, .timeout: nil
    }
  }

  package var reason: String? {
    switch self {
    case .rejected(let reason), .failed(let reason), .timeout(let reason): reason
    case .applied, .adjusted, .accepted, .sent, .read, .pending, .deferred, .superseded: nil
    }
  }
}
