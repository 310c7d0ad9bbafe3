import EventLoop
import GATT

/// How the commands for one property of a device are carried out: ``StateWrites`` or ``EventWrites``.
///
/// A pure machine. Each input returns the actions to run, in order. One operation is in flight at most; its result
/// comes back with the ``WriteOperation`` it was started with, so that a late one, of a link that is gone, changes
/// nothing. Every command gets exactly one final outcome; before it, at most one `pending`.
protocol WriteMachine<Tag>: Sendable {
  associatedtype Tag: Sendable
  typealias Action = WriteAction<Tag>

  /// When ``expire(at:)`` is to be called. May change with every input.
  var deadline: Moment? { get }

  /// The device is connected and the property can be used.
  mutating func linkUp() -> [Action]
  /// The connection is gone. Harmless when repeated.
  mutating func linkDown() -> [Action]
  /// A command, whose value has been validated.
  mutating func command(_ command: WriteCommand<Tag>) -> [Action]
  /// Another value is desired from now on; nil: whatever the device has. On a link it is applied now.
  mutating func setDesired(_ value: EncodedValue?, by origin: DesiredOrigin) -> [Action]
  /// Another gateway has the device now.
  /// - Parameter desired: what that gateway says is desired; nil: it does not say.
  mutating func handOver(desired: EncodedValue?) -> [Action]
  /// The ``deadline`` is over. Harmless when it is not, or no longer.
  mutating func expire(at now: Moment) -> [Action]
  /// How a ``WriteAction/write(_:_:)`` ended.
  mutating func wrote(_ operation: WriteOperation, _ result: Written) -> [Action]
  /// How a ``WriteAction/read(_:)`` ended.
  mutating func read(_ operation: WriteOperation, _ result: Result<EncodedValue, WriteFailure>) -> [Action]
  /// Nothing will be written any more: every command that is left gets its final outcome.
  mutating func abandon(reason: String) -> [Action]
}

/// A command for a property, and what its sender needs with the outcome.
struct WriteCommand<Tag: Sendable>: Sendable {
  let value: EncodedValue
  let tag: Tag
  /// Nil: it waits as long as it takes; for an event: not at all.
  var timeToLive: TimeToLive?

  var expired: Outcome {
    .timeout(reason: "not applied within its ttl of \(timeToLive?.seconds ?? 0) s")
  }
}

/// Tells an operation from those before it.
struct WriteOperation: Sendable, Hashable {
  private(set) var number: UInt64 = 0

  /// - Returns: the next operation.
  mutating func next() -> WriteOperation {
    number += 1
    return self
  }
}

/// What a ``WriteMachine`` asks for.
enum WriteAction<Tag: Sendable>: Sendable {
  /// Write this value, then call ``WriteMachine/wrote(_:_:)``.
  case write(EncodedValue, WriteOperation)
  /// Read the property, then call ``WriteMachine/read(_:_:)``.
  case read(WriteOperation)
  /// Report the outcome to the command's sender.
  case answer(WriteCommand<Tag>, Outcome)
  /// The device answered a read with this: the property's value from now on.
  case publish(EncodedValue)
  /// A command made this the desired value: to be kept for the next run.
  case desired(EncodedValue)
  /// The desired value could not be applied on a new link; it stays desired, and the next link tries again.
  case restoreFailed(EncodedValue, WriteFailure)
  /// The device does not answer: end the link. ``WriteMachine/linkUp()`` follows when there is another.
  case unresponsive
}

extension WriteCommand: Equatable where Tag: Equatable {}
extension WriteAction: Equatable where Tag: Equatable {}
