import GATT
import JSON

/// A source of values for a property, as described by ``help``.
package struct Generator: Sendable, Hashable {
  private enum Kind: Hashable {
    case constant(Value)
    /// Steps from the first number to the last one.
    case ramp(Range, step: Int)
    case randomWalk(Range, at: Double, SplitMix)
    /// The values, each with the time until the next one.
    case replay([RecordedValue], next: Int)
  }

  private struct Range: Hashable {
    let from: Double
    let to: Double
    let step: Double
  }

  /// The property whose values these are.
  package let property: Property
  private var kind: Kind
  private let interval: Duration?

  private static let shape =
    "constant:VALUE, ramp:FROM:TO:STEP, random_walk:FROM:TO:STEP or replay:FILE, then @MS"
  private static let intervals = 1...86_400_000

  /// Reads `text`, and the file that it names. The seed determines a random walk.
  package init(_ text: String, for property: Property, seed: UInt64 = 1) throws(PeripheralError) {
    self.property = property
    let (description, milliseconds) = try Self.interval(text)
    interval = milliseconds.map { .milliseconds($0) }
    let parts = description.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let rest = parts.count > 1 ? String(parts[1]) : ""
    switch parts[0] {
    case "constant": kind = .constant(try property.value(text: rest))
    case "ramp": kind = .ramp(try Self.range(rest, property), step: 0)
    case "random_walk":
      let range = try Self.range(rest, property)
      kind = .randomWalk(range, at: (range.from + range.to) / 2, SplitMix(seed: seed))
    case "replay": kind = .replay(try RecordedValue.read(rest, property), next: 0)
    default:
      throw PeripheralError("\(property.name): \(Excerpt(text)) is not a generator: use \(Self.shape)")
    }
  }

  /// Reads `PROPERTY=GENERATOR`.
  package init(_ assignment: String, of profile: Profile, seed: UInt64) throws(PeripheralError) {
    guard let equals = assignment.firstIndex(of: "=") else {
      throw PeripheralError("--generate: not PROPERTY=GENERATOR: \(assignment)")
    }
    let property = try profile.served(String(assignment[..<equals]))
    try self.init(String(assignment[assignment.index(after: equals)...]), for: property, seed: seed)
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
    }
  }

  /// Empty if the value cannot be encoded, which the initializer excludes.
  private func packets(_ value: Value) -> [[UInt8]] { (try? property.packets(of: value)) ?? [] }

  /// Rounded where only whole numbers can be encoded.
  private func packets(_ number: Double) -> [[UInt8]] {
    let exact = packets(.number(number))
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

  private static func range(_ text: String, _ property: Property) throws(PeripheralError) -> Range {
    let numbers = text.split(separator: ":", omittingEmptySubsequences: false).map { Double($0) }
    guard numbers.count == 3, let from = numbers[0], let to = numbers[1], let step = numbers[2],
      from.isFinite, to.isFinite, step.isFinite
    else { throw PeripheralError("\(property.name): \(Excerpt(text)) is not FROM:TO:STEP") }
    guard from != to, step != 0, (to - from) / step >= 1, (to - from) / step <= 1e9 else {
      throw PeripheralError("\(property.name): no step of \(step) leads from \(from) to \(to)")
    }
    guard property.codec.range != nil else {
      throw PeripheralError("\(property.name) is not a number: use constant or replay")
    }
    // The ends, so that every value between them can be encoded.
    for number in [from, to] { _ = try property.packets(of: .number(number.rounded())) }
    return Range(from: from, to: to, step: step)
  }
}

extension Generator {
  /// For the help of a program.
  package static let help = """
    GENERATOR is one of:
      constant:VALUE            always the same value
      ramp:FROM:TO:STEP         from FROM to TO in steps, then from FROM again
      random_walk:FROM:TO:STEP  changes by at most STEP, and stays between FROM and TO
      replay:FILE               the rows of a CSV file with the columns time,device,property,value, as printed by
                                microbit-gateway watch --csv, repeated endlessly
    followed by @MS: a new value every MS milliseconds (1000; for replay: at the intervals of the file).
    The sensors of a micro:bit notify at their own period, with the value generated last.
    """
}

extension Profile {
  /// The name that a peripheral of this kind advertises unless it is given another one.
  package var advertisedName: String {
    self.name == Profile.microbit.name ? "BBC micro:bit [zugev]" : model ?? name
  }
}
