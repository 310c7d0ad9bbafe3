/// Compresses by gzip (RFC 1952), with the fixed codes of deflate (RFC 1951): a page shrinks to two fifths, and neither the
/// build nor the gateway needs another library for it.
struct Gzip {
  private static let window = 32768
  private static let longest = 258
  /// The most earlier places that are compared with one.
  private static let mostTries = 16
  private static let lengths = table(count: 29, first: 3, group: 4)
  private static let distances = table(count: 30, first: 1, group: 2)

  private let input: [UInt8]
  private var output: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
  private var bits: UInt64 = 0
  private var bitCount = 0
  /// The last place of each hash of three bytes; and for each place the one before with the same hash.
  private var last = [Int32](repeating: -1, count: 1 << 13)
  private var before: [Int32]

  static func compress(_ input: [UInt8]) -> [UInt8] {
    var gzip = Gzip(input: input, before: [Int32](repeating: -1, count: input.count))
    return gzip.run()
  }

  private mutating func run() -> [UInt8] {
    put(1, 1)
    put(1, 2)
    var place = 0
    while place < input.count {
      let match = match(at: place)
      if match.length > 2 {
        put(length: match.length, distance: match.distance)
      } else {
        put(symbol: Int(input[place]))
      }
      for covered in place..<place + max(1, match.length) { note(covered) }
      place += max(1, match.length)
    }
    put(symbol: 256)
    put(0, 7)
    var checksum = ~UInt32(0)
    for byte in input {
      checksum ^= UInt32(byte)
      for _ in 0..<8 { checksum = checksum >> 1 ^ (checksum & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
    for word in [~checksum, UInt32(truncatingIfNeeded: input.count)] {
      for shift in [0, 8, 16, 24] { output.append(UInt8(truncatingIfNeeded: word >> UInt32(shift))) }
    }
    return output
  }

  // MARK: Repetitions

  private func hash(_ place: Int) -> Int {
    let bytes = Int(input[place]) << 16 | Int(input[place + 1]) << 8 | Int(input[place + 2])
    return (bytes &* 0x9E3779B1) >> 12 & (last.count - 1)
  }

  private mutating func note(_ place: Int) {
    guard place + 2 < input.count else { return }
    let hash = hash(place)
    before[place] = last[hash]
    last[hash] = Int32(place)
  }

  private func match(at place: Int) -> (length: Int, distance: Int) {
    var best = (length: 0, distance: 0)
    guard place + 2 < input.count else { return best }
    let most = min(Self.longest, input.count - place)
    var (candidate, tries) = (Int(last[hash(place)]), 0)
    while candidate >= 0, place - candidate <= Self.window, tries < Self.mostTries, best.length < most {
      var length = 0
      while length < most, input[candidate + length] == input[place + length] { length += 1 }
      if length > best.length { best = (length, place - candidate) }
      (candidate, tries) = (Int(before[candidate]), tries + 1)
    }
    return best
  }

  // MARK: Codes

  /// The first value of each code and its number of further bits; that number grows by one after each `group` codes.
  private static func table(count: Int, first: Int, group: Int) -> [(first: Int, bits: Int)] {
    var next = first
    return (0..<count).map { code in
      let bits = max(0, code / group - 1)
      defer { next += 1 << bits }
      return (next, bits)
    }
  }

  private mutating func put(length: Int, distance: Int) {
    // The longest has a code of its own, without further bits.
    let code = length == Self.longest ? 28 : (Self.lengths.prefix(28).lastIndex { $0.first <= length } ?? 0)
    put(symbol: 257 + code)
    if code < 28 { put(length - Self.lengths[code].first, Self.lengths[code].bits) }
    let far = Self.distances.lastIndex { $0.first <= distance } ?? 0
    put(code: far, 5)
    put(distance - Self.distances[far].first, Self.distances[far].bits)
  }

  private mutating func put(symbol: Int) {
    switch symbol {
    case ..<144: put(code: 0x30 + symbol, 8)
    case ..<256: put(code: 0x190 + symbol - 144, 9)
    case ..<280: put(code: symbol - 256, 7)
    case _: put(code: 0xC0 + symbol - 280, 8)
    }
  }

  /// Codes begin with their highest bit, numbers with their lowest.
  private mutating func put(code: Int, _ count: Int) {
    for bit in (0..<count).reversed() { put(code >> bit & 1, 1) }
  }

  private mutating func put(_ value: Int, _ count: Int) {
    bits |= UInt64(value) << UInt64(bitCount)
    bitCount += count
    while bitCount >= 8 {
      output.append(UInt8(truncatingIfNeeded: bits))
      bits >>= 8
      bitCount -= 8
    }
  }

  private init(input: [UInt8], before: [Int32]) { (self.input, self.before) = (input, before) }
}
