import EventLoop
import GATT

/// A state machine that decides what to write to one property of a device, and when: ``StateWrites`` or
/// ``EventWrites``.
///
/// Pure: each input returns the actions to run, in order. At most one operation is in flight. Its result is passed back
/// with the ``WriteOperation`` it was started with, so that a late result of an earlier link is ignored. Every command
/// gets exactly one final outcome, and before it at most one `pending`. The exception: see
/// ``StateWrites/handOver(_:lastChange:mayHaveCommands:)``.
protocol WriteMachine: Sendable {
  /// When to call ``expire(at:)``; nil: not at all. May change with every input.
  var deadline: Moment? { get }
  /// Whether a command waits for the next link.
  var hasWaiting: Bool { get }
  /// The desired value; any input may change it.
  var desired: DesiredValue { get }

  /// The device is connected and the property can be used.
  /// - Parameter written: what was written on this link already; nil: nothing.
  mutating func linkUp(_ written: EncodedValue?) -> [WriteAction]
  /// The link has ended, or no longer offers the property. Has no effect when repeated.
  mutating func linkDown() -> [WriteAction]
  mutating func command(_ command: EncodedCommand) -> [WriteAction]
  /// Changes the desired value, and applies it at once if there is a link.
  mutating func change(_ change: DesiredChange) -> [WriteAction]
  /// Another gateway owns the device now: commands here are ended, or left to it.
  /// - Parameters:
  ///   - value: what is set there, or that nothing is; nil: it is not known.
  ///   - lastChange: when something was set there last, this property or another one.
  ///   - mayHaveCommands: whether the other gateway may have received the waiting commands too.
  mutating func handOver(
    _ value: EncodedValue??, lastChange: Moment, mayHaveCommands: Bool
  ) -> [WriteAction]
  /// Ends waiting commands whose time to live is over. Has no effect before the ``deadline``.
  mutating func expire(at now: Moment) -> [WriteAction]
  /// Whether this write is still to be carried out.
  func awaits(_ operation: WriteOperation) -> Bool
  /// The result of a ``WriteAction/write(_:_:)``.
  mutating func wrote(_ operation: WriteOperation, _ result: WriteResult) -> [WriteAction]
  /// The result of a ``WriteAction/read(_:)``.
  mutating func read(_ operation: WriteOperation, _ result: ReadResult) -> [WriteAction]
  /// Stops writing until the next ``linkUp(_:)``, and ends every unfinished command.
  /// - Parameters:
  ///   - reason: why commands fail.
  ///   - defers: the gateway stops: commands that outlive the run are ``Outcome/deferred``.
  mutating func abandon(reason: String, defers: Bool) -> [WriteAction]
}

extension Property.WriteMode {
  /// The outcome of a write that was not read back.
  var unconfirmed: Outcome { self == .command ? .sent : .accepted }
}

/// The number of a read or a write among those of the same property, from 1.
typealias WriteOperation = UInt64

/// What the owner of a ``WriteMachine`` is to do.
enum WriteAction: Sendable {
  /// Write this value, then call ``WriteMachine/wrote(_:_:)``.
  case write(EncodedValue, WriteOperation)
  /// Read the property, then call ``WriteMachine/read(_:_:)``.
  case read(WriteOperation)
  /// The command is pending, or has ended.
  case outcome(EncodedCommand, Outcome)
  /// The value was read, after a write or on a new link.
  case readBack(EncodedValue)
  /// Log that the desired value could not be applied. It is tried again on the next link.
  case applyFailed(EncodedValue, WriteFailure)
  /// The device does not answer: end the link. Call ``WriteMachine/linkUp(_:)`` on the next one.
  case unresponsive
}

/// The result of a write and its read-back.
enum WriteResult: Sendable, Equatable {
  /// Accepted by the device; what it held then, or why that is not known.
  case thenRead(ReadResult)
  /// Accepted by the device, or given to the radio; it was not to be read back.
  case notConfirmed
  case notWritten(WriteFailure)
}

/// The result of a read.
typealias ReadResult = Result<EncodedValue, WriteFailure>

/// Why a write or a read failed.
enum WriteFailure: Error, Sendable, Equatable, CustomStringConvertible {
  case timeout
  case linkLost
  /// Refused by BlueZ or the device.
  case failed(reason: String)

  var description: String {
    switch self {
    case .timeout: "no answer in time"
    case .linkLost: "the link was lost"
    case .failed(let reason): reason
    }
  }
}
