import Configuration
import Devices
import GATT
import JSON

/// Writes the readings of one property as JSON, for `…/readings` and the topic of an event.
///
/// On the path of every reading: what does not change between two readings is made once.
struct ReadingEncoder: Sendable {
  private let codec: Codec
  private let beforeValue: [UInt8]
  private let beforeTime: [UInt8]
  private let eventBeforeValue: [UInt8]
  private let afterSequence: [UInt8]

  init(property: Property, gateway: GatewayID, run: RunID) {
    func quoted(_ text: String) -> [UInt8] { JSONValue.string(text).bytes }
    codec = property.codec
    beforeValue = Array(#"{"property":"#.utf8) + quoted(property.name) + Array(#","value":"#.utf8)
    beforeTime = property.unit.map { Array(#","unit":"#.utf8) + quoted($0) } ?? []
    eventBeforeValue = Array((property.codec.words.isEmpty ? #"{"value":"# : #"{"event_type":"#).utf8)
    afterSequence =
      Array(#","run":"#.utf8) + quoted(run.description) + Array(#","gateway":"#.utf8)
      + quoted(gateway.description) + Array("}".utf8)
  }

  /// For `…/readings`.
  func encode(_ reading: Reading, sequence: UInt64) -> [UInt8] {
    encode(reading, sequence, beforeValue, beforeTime)
  }

  /// For the topic of an event.
  func encodeEvent(_ reading: Reading, sequence: UInt64) -> [UInt8] {
    encode(reading, sequence, eventBeforeValue, [])
  }

  private func encode(
    _ reading: Reading, _ sequence: UInt64, _ beforeValue: [UInt8], _ beforeTime: [UInt8]
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(beforeValue.count + beforeTime.count + afterSequence.count + 96)
    bytes += beforeValue
    if case .integer(let number) = reading.value {
      bytes.append(decimal: number)
    } else {
      bytes += codec.json(reading.value).bytes
    }
    bytes += beforeTime
    bytes += #","time":""#.utf8
    reading.time.append(to: &bytes)
    bytes += #"","sequence":"#.utf8
    bytes.append(decimal: sequence)
    bytes += afterSequence
    return bytes
  }

  /// The reading with `"replayed":true` at its end: one that was kept while the broker was away.
  static func markReplayed(_ reading: [UInt8]) -> [UInt8] {
    reading.dropLast() + Array(#","replayed":true}"#.utf8)
  }
}

extension [UInt8] {
  /// The number's decimal digits, without a `String` in between.
  init(decimal number: some FixedWidthInteger) { self = withDecimal(number) { Array($0) } }

  /// Appends the number's decimal digits.
  mutating func append(decimal number: some FixedWidthInteger) {
    withDecimal(number) { append(contentsOf: $0) }
  }
}

private func withDecimal<R>(_ number: some FixedWidthInteger, _ body: (UnsafeBufferPointer<UInt8>) -> R) -> R
{
  // The sign and the 19 digits of an Int, or the 20 of a UInt64.
  withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
    var start = digits.endIndex
    var rest = UInt64(number.magnitude)
    repeat {
      start -= 1
      digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0
    if number < 0 {
      start -= 1
      digits[start] = UInt8(ascii: "-")
    }
    return body(UnsafeBufferPointer(rebasing: digits[start...]))
  }
}
