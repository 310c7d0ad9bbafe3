import EventLoop
import GATT

/// A value together with the bytes that stand for it. Equal where the bytes are: two values may have the same bytes,
/// and a peripheral knows bytes alone.
struct EncodedValue: Sendable, Equatable {
  let value: Value
  let bytes: [UInt8]

  static func == (a: EncodedValue, b: EncodedValue) -> Bool { a.bytes == b.bytes }
}

/// How long a command may wait to be carried out.
package struct TimeToLive: Sendable, Equatable {
  package let seconds: Int
  package let deadline: Moment

  /// - Parameter arrival: when the command came.
  package init(seconds: Int, from arrival: Moment) {
    self.seconds = seconds
    deadline = arrival + .seconds(seconds)
  }
}

/// Where a desired value comes from that no command asks for; it decides what becomes of unfinished commands.
enum DesiredOrigin: Sendable {
  /// The configuration ranks below every command: unfinished commands go on.
  case configuration
  /// The latest of commands and requests wins: a command that waits is superseded, and one in flight is answered
  /// and then undone.
  case request
}

/// What came of a command.
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

/// What came of a write and its read-back.
enum Written: Sendable, Equatable {
  /// The device accepted the value and then held this one.
  case holds(EncodedValue)
  /// Accepted by the device, or given to the radio; it was not to be read back.
  case notConfirmed
  case notWritten(WriteFailure)
  /// Accepted, and what the device holds is not known.
  case notReadBack(WriteFailure)
}

/// Why a write or a read failed.
enum WriteFailure: Error, Sendable, Equatable {
  /// No answer within the time given.
  case timeout
  /// The link was lost meanwhile; the operation is tried again on the next link.
  case linkLost
  /// Refused by BlueZ or the device.
  case failed(reason: String)
}

extension WriteFailure: CustomStringConvertible {
  var description: String {
    switch self {
    case .timeout: "no answer in time"
    case .linkLost: "the link was lost"
    case .failed(let reason): reason
    }
  }
}

extension Outcome {
  /// As results have it in `status`.
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
