import Glibc
import TestSupport
import Testing

/// The seeds, and inputs made of them at random, the same in each run; `make fuzz` looks for others, with libFuzzer.
@Suite(.serialized, .timeLimit(.minutes(10))) struct FuzzTests {
  @Test(arguments: checks.map(\.key))
  func nothingEndsTheProcess(_ name: String) throws {
    let check = try #require(checks.first { $0.key == name }?.value)
    let seeds = try seeds(of: name)
    var mutation = Mutation(seeds)
    for input in seeds + (0..<(name == "broker" ? 1000 : 5000)).map({ _ in mutation.next() }) {
      checked = input
      check(input)
    }
  }
}

/// Inputs that differ a little from the seeds, or are composed of two.
private struct Mutation {
  /// Those that mean something to many formats: quotation mark, minus, 9, backslash.
  private static let bytes: [UInt8] = [0, 0x22, 0x2D, 0x39, 0x5C, 0x7F, 0xFF]

  private let seeds: [[UInt8]]
  private var random = SplitMix64(state: 1)

  init(_ seeds: [[UInt8]]) { self.seeds = seeds }

  mutating func next() -> [UInt8] {
    var input = seeds.randomElement(using: &random) ?? []
    for _ in 0...Int.random(in: 0..<4, using: &random) { change(&input) }
    return input
  }

  private mutating func change(_ input: inout [UInt8]) {
    let start = Int.random(in: 0...input.count, using: &random)
    let end = Int.random(in: start...min(start + 16, input.count), using: &random)
    switch Int.random(in: 0..<6, using: &random) {
    case 0: input.removeSubrange(start..<end)
    case 1: input.insert(contentsOf: input[start..<end], at: end)
    case 2: input.insert(.random(in: 0...255, using: &random), at: start)
    case 3 where start < input.count: input[start] = .random(in: 0...255, using: &random)
    case 4 where start < input.count: input[start] = Self.bytes.randomElement(using: &random)!
    default:
      let other = seeds.randomElement(using: &random) ?? []
      input.replaceSubrange(start..., with: other.dropFirst(.random(in: 0...other.count, using: &random)))
    }
  }
}
