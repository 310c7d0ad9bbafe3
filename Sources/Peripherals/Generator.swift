import GATT
import JSON

/// A source of values for a property, as described by ``help``.
package struct Generator: Sendable, Equatable {
  private enum Kind: Equatable {
    case constant(Value)
    /// Steps from the first number to the last one.
    case ramp(Range, step: Int)
    case randomWalk(Range, at: Double, SplitMix)
    /// The values, each with the time until the next one.
    case replay([RecordedValue], next: Int)
    /// What is written to the property, line by line.
    case echo(of: Property, rest: [UInt8], lines: [String])
  }

  private struct Range: Hashable {
    let from: Double
    let to: Double
    let step: Double
  }

  /// The property whose values these are.
  package let property: Property
  /// Each value is a line of the property: this name, a colon, and the value.
  private let name: String?
  private var kind: Kind
  private let interval: Duration?

  private static let intervals = 1...86_400_000

  /// Reads `text`, and the file that it names. The seed determines a random walk.
  ///
  /// - Parameters:
  ///   - name: of a value in lines of the property.
  ///   - sent: the property to which such lines are written.
  package init(
    _ text: String, for property: Property, named name: String? = nil, sent: Property? = nil, seed: UInt64 = 1
  ) throws(PeripheralError) {
    self.property = property
    self.name = name
    let (description, milliseconds) = try Self.interval(text)
    interval = milliseconds.map { .milliseconds($0) }
    let parts = description.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let rest = parts.count > 1 ? String(parts[1]) : ""
    switch parts[0] {
    case "constant": kind = .constant(try property.value(text: name.map { "\($0):\(rest)" } ?? rest))
    case "echo" where name != nil && sent != nil && rest.isEmpty:
      kind = .echo(of: sent ?? property, rest: [], lines: [])
    case "ramp": kind = .ramp(try Self.range(rest, property, isNamed: name != nil), step: 0)
    case "random_walk":
      let range = try Self.range(rest, property, isNamed: name != nil)
      kind = .randomWalk(range, at: (range.from + range.to) / 2, SplitMix(seed: seed))
    case "replay" where name == nil: kind = .replay(try RecordedValue.read(rest, property), next: 0)
    default:
      let last = name == nil ? "replay:FILE" : "echo"
      throw PeripheralError(
        "\(name.map { "values/\($0)" } ?? property.name): \(Excerpt(text)) is not a generator: "
          + "use constant:VALUE, ramp:FROM:TO:STEP, random_walk:FROM:TO:STEP or \(last), then @MS")
    }
  }

  /// Reads `PROPERTY=GENERATOR`.
  package init(_ assignment: String, of profile: Profile, seed: UInt64) throws(PeripheralError) {
    guard let equals = assignment.firstIndex(of: "=") else {
      throw PeripheralError("--generate: not PROPERTY=GENERATOR: \(assignment)")
    }
    let (name, text) = (assignment[..<equals], String(assignment[assignment.index(after: equals)...]))
    if name.hasPrefix("values/"), let values = profile.values {
      try self.init(
        text, for: profile.properties[values.received], named: String(name.dropFirst("values/".count)),
        sent: values.sent.map { profile.properties[$0] }, seed: seed)
    } else {
      try self.init(text, for: try profile.served(String(name)), seed: seed)
    }
  }

  /// The next value, as the bytes of its notifications, and the time until the one after it.
  package mutating func next() -> (packets: [[UInt8]], wait: Duration) {
    let wait = interval ?? .seconds(1)
    switch kind {
    case .constant(let value): return (packets(value), wait)
    case .ramp(let range, let step):
      let count = Int(((range.to - range.from) / range.step + 1e-9).rounded(.down)) + 1
      kind = .ramp(range, step: (step + 1) % count)
      return (packets(range.from + Double(step) * range.step), wait)
    case .randomWalk(let range, let value, var random):
      let step = abs(range.step)
      let change = Double.random(in: -step...step, using: &random)
      let next = min(max(value + change, min(range.from, range.to)), max(range.from, range.to))
      kind = .randomWalk(range, at: next, random)
      return (packets(next), wait)
    case .replay(let values, let index):
      kind = .replay(values, next: (index + 1) % values.count)
      return (packets(values[index].value), interval ?? values[index].wait)
    case .echo(let sent, let rest, let lines):
      kind = .echo(of: sent, rest: rest, lines: [])
      return (lines.flatMap { packets(.text($0)) }, interval ?? Self.echoInterval)
    }
  }

  private static let echoInterval = Duration.milliseconds(50)
  /// How many bytes of a line are kept: the buffer of a micro:bit's program.
  private static let longestLine = 61

  /// A central has written to a characteristic: lines for this value are sent back.
  package mutating func received(_ bytes: [UInt8], by characteristic: BluetoothUUID) {
    guard case .echo(let sent, var rest, var lines) = kind, sent.characteristic == characteristic else {
      return
    }
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") else {
        if rest.count < Self.longestLine { rest.append(byte) }
        continue
      }
      let line = String(decoding: rest, as: UTF8.self)
      if let name, line.hasPrefix("\(name):") { lines.append(line) }
      rest = []
    }
    kind = .echo(of: sent, rest: rest, lines: lines)
  }

  /// The packets; empty if the value cannot be encoded, which the initializer excludes.
  private func packets(_ value: Value) -> [[UInt8]] { (try? property.packets(of: value)) ?? [] }

  /// Rounded where only whole numbers can be encoded, and in a text, where programs have two decimals.
  private func packets(_ number: Double) -> [[UInt8]] {
    let rounded = (number * 100).rounded() / 100
    if let name {
      let text = Int(exactly: number).map { "\($0)" } ?? "\(rounded)"
      return packets(.text("\(name):\(text)"))
    }
    let exact = packets(.number(property.codec.isDecimal ? rounded : number))
    return exact.isEmpty ? packets(.number(number.rounded())) : exact
  }

  // MARK: Parsing

  private static func interval(_ text: String) throws(PeripheralError) -> (String, Int?) {
    guard let at = text.lastIndex(of: "@") else { return (text, nil) }
    let digits = text[text.index(after: at)...]
    // Part of the value or the file's name.
    guard !digits.isEmpty, digits.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else {
      return (text, nil)
    }
    guard let milliseconds = Int(digits), intervals.contains(milliseconds) else {
      throw PeripheralError("@\(digits): the interval is 1 to \(intervals.upperBound) ms")
    }
    return (String(text[..<at]), milliseconds)
  }

  private static func range(
    _ text: String, _ property: Property, isNamed: Bool
  ) throws(PeripheralError) -> Range {
    let numbers = text.split(separator: ":", omittingEmptySubsequences: false).map { Double($0) }
    guard numbers.count == 3, let from = numbers[0], let to = numbers[1], let step = numbers[2],
      from.isFinite, to.isFinite, step.isFinite
    else { throw PeripheralError("\(property.name): \(Excerpt(text)) is not FROM:TO:STEP") }
    guard from != to, step != 0, (to - from) / step >= 1, (to - from) / step <= 1e9 else {
      throw PeripheralError("\(property.name): no step of \(step) leads from \(from) to \(to)")
    }
    if isNamed { return Range(from: from, to: to, step: step) }
    guard property.codec.range != nil else {
      throw PeripheralError("\(property.name) is not a number: use constant or replay")
    }
    // The ends, so that every value between them can be encoded.
    for number in [from, to] { _ = try property.packets(of: .number(number.rounded())) }
    return Range(from: from, to: to, step: step)
  }
}

extension Generator {
  /// The text for the help of a program.
  package static let help = """
    GENERATOR is one of:
      constant:VALUE            always the same value
      ramp:FROM:TO:STEP         from FROM to TO in steps, then from FROM again
      random_walk:FROM:TO:STEP  changes by at most STEP, and stays between FROM and TO
      replay:FILE               the rows of a CSV file with the columns time,device,property,value, as printed by
                                microbit-gateway watch --csv, repeated endlessly
      echo                      for values/NAME: what is written to it is sent back
    followed by @MS: a new value every MS milliseconds (1000; for replay: at the intervals of the file).
    PROPERTY may be values/NAME: lines "NAME:VALUE" of the UART, as a program sends them.
    The sensors of a micro:bit notify at their own period, with the value generated last.
    """
}

extension Profile {
  /// The name that a peripheral of this kind advertises unless it is given another one.
  package var advertisedName: String {
    self.name == Profile.microbit.name ? "BBC micro:bit [zugev]" : model ?? name
  }
}
