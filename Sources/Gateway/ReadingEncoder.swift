import GATT

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
    beforeTime = Array(#","unit":"#.utf8) + quoted(property.unit) + Array(#","time":""#.utf8)
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
  /// Appends the number's decimal digits, without a `String` in between.
  mutating func append(decimal number: some FixedWidthInteger) {
    if number < 0 { append(UInt8(ascii: "-")) }
    let magnitude = UInt64(number.magnitude)
    var divisor: UInt64 = 1
    while magnitude / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: magnitude / divisor % 10))
      divisor /= 10
    }
  }
}
