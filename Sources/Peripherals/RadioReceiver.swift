import EventLoop
import GATT

/// A micro:bit on USB that prints what it receives by radio, and the micro:bits that send to it.
///
/// Packets collide as in unslotted ALOHA: there is no carrier sense, no acknowledgement and no repetition.
package struct RadioReceiver: Sendable {
  private struct Sender {
    let serial: UInt32
    let name: String
    /// When its program started.
    let start: Moment
    var value: Moment
    var press: Moment?
    /// Sends back a value that was set, as text.
    var echo: (moment: Moment, name: String, value: String)?
    var temperature: Int

    var next: Moment { [value, press ?? value, echo?.moment ?? value].min() ?? value }
  }

  /// The time of one packet on air at 1 Mbit/s.
  private static let airtime = Duration.microseconds(328)
  /// The time of one byte at 115,200 baud.
  private static let byteTime = Duration.nanoseconds(86_806)
  /// How many packets wait while a line is printed: MakeCode's four buffers and its queue.
  private static let queue = 10
  /// The length to which MakeCode pads lines, with their end.
  private static let padding = 32
  /// What DAPLink writes where bytes are missing.
  package static let overflow = Array("<DAPLink:Overflow>\n".utf8)

  private let scenario: RadioScenario
  private var senders: [Sender] = []
  private var random: SplitMix
  private var lastPacket: Moment?
  /// The line so far of what is written to the port.
  private var input: [UInt8] = []
  /// Lines that are being printed, each with its end.
  private var printing: [(end: Moment, line: [UInt8])] = []
  /// How many packets were sent, and what became of them.
  private(set) package var counts = Counts()

  package struct Counts: Sendable, Hashable {
    package var sent = 0
    package var printed = 0
    package var collided = 0
    /// Lost by chance, as the scenario has it.
    package var lost = 0
    /// Lost as the receiver was busy.
    package var overrun = 0
    /// Texts that were sent for the computer.
    package var forwarded = 0
  }

  package init(_ scenario: RadioScenario, at now: Moment, seed: UInt64) {
    self.scenario = scenario
    random = SplitMix(seed: seed)
    for index in 0..<scenario.senders {
      // Names differ as 7919 and 3125 have no common divisor; serial numbers as their upper parts do.
      let name = UInt32((index * 7919 + 1234) % 3125)
      let serial = (UInt32.random(in: 0..<1_000, using: &random) &* 1_000 &+ UInt32(index)) &* 3125 &+ name
      senders.append(
        Sender(
          serial: serial, name: MicrobitName(serial: serial).description, start: now,
          value: now + .milliseconds(scenario.interval) * Double.random(in: 0..<1, using: &random),
          temperature: 18 + index % 8))
    }
  }

  package var names: [String] { senders.map(\.name) }

  /// When something happens next.
  package var nextEvent: Moment? {
    [senders.lazy.map(\.next).min(), printing.first?.end].compactMap(\.self).min()
  }

  /// Presses button A of a sender.
  package mutating func press(_ index: Int, at moment: Moment) { senders[index].press = moment }

  /// The bytes that have been printed until `now`.
  package mutating func advance(to now: Moment) -> [UInt8] {
    var bytes: [UInt8] = []
    while let next = nextEvent, next <= now {
      if let line = printing.first, line.end == next {
        bytes += printing.removeFirst().line
        counts.printed += 1
      } else if let index = senders.firstIndex(where: { $0.next == next }) {
        send(index, at: next)
      }
    }
    return bytes
  }

  private mutating func send(_ index: Int, at moment: Moment) {
    let text: String
    if senders[index].press == moment {
      senders[index].press = nil
      text = line(index, "a", "1", at: moment)
    } else if let echo = senders[index].echo, echo.moment == moment {
      senders[index].echo = nil
      text = line(index, echo.name, echo.value, at: moment)
    } else {
      senders[index].temperature = min(
        40, max(-5, senders[index].temperature + Int.random(in: -1...1, using: &random)))
      text = line(index, "temp", "\(senders[index].temperature)", at: moment)
      let pause = Double(scenario.interval) * Double.random(in: 0.5...1.5, using: &random)
      senders[index].value = moment + .microseconds(Int64(pause * 1000))
      if happens(scenario.presses) { senders[index].press = moment + .milliseconds(5) }
    }
    counts.sent += 1
    let last = lastPacket
    lastPacket = moment
    let following = senders.lazy.map(\.next).min()
    if last.map({ moment < $0 + Self.airtime }) ?? false
      || following.map({ $0 < moment + Self.airtime }) ?? false
    {
      counts.collided += 1
    } else if happens(scenario.loss) {
      counts.lost += 1
    } else if printing.count > Self.queue {
      counts.overrun += 1
    } else {
      let begin = max(moment, printing.last?.end ?? moment)
      printing.append((begin + Self.byteTime * text.utf8.count, Array(text.utf8)))
    }
  }

  /// What was written to the port. A text of at most 19 bytes goes out by radio, and may be lost like any other.
  package mutating func take(_ bytes: some Sequence<UInt8>, at now: Moment) {
    guard scenario.forwards else { return }
    for byte in bytes {
      guard byte == 10 else {
        input = input.suffix(127) + [byte]
        continue
      }
      let line = String(decoding: input, as: UTF8.self)
      input = []
      if line == "hello" {
        printing.append((max(now, printing.last?.end ?? now) + .milliseconds(3), Array("forwards\r\n".utf8)))
      } else {
        forward(String(decoding: line.utf8.prefix(19), as: UTF8.self), at: now)
      }
    }
  }

  private mutating func forward(_ text: String, at now: Moment) {
    counts.forwarded += 1
    lastPacket = now
    let parts = text.split(separator: ">", maxSplits: 1)
    let pair = parts.last?.split(separator: ":", maxSplits: 1) ?? []
    guard parts.count == 2, pair.count == 2, !happens(scenario.loss) else { return }
    for index in senders.indices where senders[index].name == parts[0] {
      let pause = Duration.milliseconds(Int64.random(in: 20...200, using: &random))
      senders[index].echo = (now + pause, String(pair[0]), String(pair[1]))
    }
  }

  private mutating func happens(_ percent: Int) -> Bool {
    percent > 0 && Int.random(in: 0..<100, using: &random) < percent
  }

  private func line(_ index: Int, _ name: String, _ value: String, at moment: Moment) -> String {
    let sender = senders[index]
    let text: String
    switch scenario.form {
    case .json:
      let time = Int(sender.start.duration(to: moment) / .milliseconds(1))
      return #"{"t":\#(time),"s":\#(Int32(bitPattern: sender.serial)),"n":"\#(name)","v":\#(value)}"# + "\r\n"
    case .letters: text = "\(sender.name),\(name),\(value)"
    case .values: text = "\(name):\(value)"
    }
    let spaces = (Self.padding - (text.utf8.count + 2) % Self.padding) % Self.padding
    return text + String(repeating: " ", count: spaces) + "\r\n"
  }
}
