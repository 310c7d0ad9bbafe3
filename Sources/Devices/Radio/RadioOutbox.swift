import Configuration
import EventLoop
import GATT

/// A value that is sent to a micro:bit by radio.
struct RadioCommand: Sendable {
  /// Which value of which device it is: a newer one takes its place.
  struct Target: Hashable, Sendable {
    let device: BluetoothAddress
    let value: ValueKey
  }

  let target: Target
  /// What the receiver sends, without a line end.
  let line: [UInt8]
  let reply: @LoopActor (Outcome) -> Void
}

/// The values that are sent by radio, each until the micro:bit has sent it back: radio has no acknowledgement, so a value is sent
/// up to four times: at once, and 1 s, 3 s and 7 s later. It is given up after 9 s.
///
/// A pure machine. Each command gets one outcome.
struct RadioOutbox: Sendable {
  enum Action: Sendable {
    /// Give it to a receiver, and call ``wrote(_:)`` if that has taken it.
    case write(RadioCommand)
    case outcome(RadioCommand, Outcome)
  }

  /// The maximum number of values that wait for their echo; further ones are rejected.
  static let capacity = 64
  /// The time between two lines: a micro:bit handles one packet at a time.
  static let pause = Duration.milliseconds(20)
  /// The time to the next step, after each time that a value was sent.
  static let waits: [Duration] = [.seconds(1), .seconds(2), .seconds(4), .seconds(2)]

  private struct Entry {
    let command: RadioCommand
    var attempts = 0
    var isWritten = false
    var due: Moment

    /// How it ends without an echo.
    var end: Outcome { isWritten ? .sent : .failed(reason: "no receiver could send it") }
    var isLast: Bool { attempts == waits.count }
  }

  /// The values that wait for their echo, in the order in which they came.
  private var entries: [Entry] = []
  /// When the next line may be written.
  private var free: Moment?

  /// When to call ``timer(at:)``.
  var deadline: Moment? { entries.lazy.map(next).min() }

  private func next(_ entry: Entry) -> Moment { entry.isLast ? entry.due : max(entry.due, free ?? entry.due) }

  mutating func send(_ command: RadioCommand, at now: Moment) -> [Action] {
    var actions: [Action] = []
    // The older value must not be sent again after the newer one.
    if let index = entries.firstIndex(where: { $0.command.target == command.target }) {
      actions.append(.outcome(entries.remove(at: index).command, .superseded))
    }
    guard entries.count < Self.capacity else {
      return [.outcome(command, .rejected(reason: "\(Self.capacity) values wait to be sent back already"))]
    }
    entries.append(Entry(command: command, due: now))
    return actions + timer(at: now)
  }

  /// A receiver has taken the command.
  mutating func wrote(_ target: RadioCommand.Target) {
    if let index = entries.firstIndex(where: { $0.command.target == target }) {
      entries[index].isWritten = true
    }
  }

  /// The micro:bit has sent the value.
  /// - Returns: whether it is an echo, which ends the command.
  mutating func echoed(_ target: RadioCommand.Target) -> Bool {
    guard let index = entries.firstIndex(where: { $0.command.target == target && $0.isWritten }) else {
      return false
    }
    entries.remove(at: index)
    return true
  }

  mutating func timer(at now: Moment) -> [Action] {
    var actions: [Action] = []
    while let index = entries.indices.filter({ next(entries[$0]) <= now }).min(by: {
      entries[$0].due < entries[$1].due
    }) {
      guard !entries[index].isLast else {
        let entry = entries.remove(at: index)
        actions.append(.outcome(entry.command, entry.end))
        continue
      }
      entries[index].due = now + Self.waits[entries[index].attempts]
      entries[index].attempts += 1
      free = now + Self.pause
      actions.append(.write(entries[index].command))
    }
    return actions
  }

  /// Nothing more is sent: to a device; nil: to any.
  mutating func abandon(_ device: BluetoothAddress?) -> [Action] {
    let ended = entries.filter { device == nil || $0.command.target.device == device }
    entries.removeAll { device == nil || $0.command.target.device == device }
    return ended.map { .outcome($0.command, $0.end) }
  }
}
