import Configuration
import GATT
import JSON

/// Writes the readings of one property of one device as JSON, for the `…/readings` topic.
///
/// On the path of every notification, hence by hand: what does not change between two readings is made once.
struct ReadingEncoder: Sendable {
  private let beforeValue: [UInt8]
  private let beforeTime: [UInt8]
  private let beforeSequence: [UInt8]
  private let afterSequence: [UInt8]

  init(property: Property, gateway: GatewayID, run: RunID) {
    func quoted(_ text: String) -> [UInt8] { JSONValue.string(text).bytes }
    beforeValue = Array(#"{"property":"#.utf8) + quoted(property.name) + Array(#","value":"#.utf8)
    beforeTime = Array(#","unit":"#.utf8) + quoted(property.unit ?? "") + Array(#","time":""#.utf8)
    beforeSequence = Array(#"","sequence":"#.utf8)
    afterSequence =
      Array(#","run":"#.utf8) + quoted(run.description) + Array(#","gateway":"#.utf8)
      + quoted(gateway.description) + Array("}".utf8)
  }

  /// - Parameter sequence: counts the device's readings of this run, whatever their property.
  func encode(_ value: Int, time: Timestamp, sequence: UInt64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(
      beforeValue.count + beforeTime.count + beforeSequence.count + afterSequence.count + 64)
    bytes += beforeValue
    bytes.append(decimal: value)
    bytes += beforeTime
    time.append(to: &bytes)
    bytes += beforeSequence
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
