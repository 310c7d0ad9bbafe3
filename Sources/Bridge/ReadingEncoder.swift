import Configuration
import Devices
import GATT
import JSON

/// Writes the readings of one property as JSON, for `…/readings` and the topic of an event.
///
/// The constant parts are made once, as every reading is encoded here.
struct ReadingEncoder: Sendable {
  private let codec: Codec
  /// What precedes the value.
  private let beforeReading: [UInt8]
  private let beforeEvent: [UInt8]
  /// The member with the unit, which a reading has behind its value; empty without one.
  private let unit: [UInt8]
  private let hasFields: Bool
  private let afterSequence: [UInt8]

  init(property: Property, gateway: GatewayID, run: RunID) {
    func quoted(_ text: String) -> [UInt8] { JSONValue.string(text).bytes }
    codec = property.codec
    beforeReading = Array(#"{"property":"#.utf8) + quoted(property.name) + Array(#","value":"#.utf8)
    unit = property.unit.map { Array(#","unit":"#.utf8) + quoted($0) } ?? []
    hasFields = !codec.words.isEmpty && codec.fields != nil
    let begin = hasFields ? "{" : codec.words.isEmpty ? #"{"value":"# : #"{"event_type":"#
    beforeEvent = Array(begin.utf8)
    afterSequence =
      Array(#","run":"#.utf8) + quoted(run.description) + Array(#","gateway":"#.utf8)
      + quoted(gateway.description) + Array("}".utf8)
  }

  /// - Parameter isEvent: whether it is for the topic of an event, instead of `…/readings`.
  func encode(_ reading: Reading, isEvent: Bool = false, sequence: UInt64) -> [UInt8] {
    let before = isEvent ? beforeEvent : beforeReading
    var bytes: [UInt8] = []
    bytes.reserveCapacity(before.count + unit.count + afterSequence.count + 96)
    bytes += before
    if case .integer(let number) = reading.value {
      bytes += String(number).utf8
    } else if isEvent, hasFields {
      // The fields of the value become members of the event: the word is `event_type`.
      bytes += codec.json(reading.value).bytes.dropFirst().dropLast()
    } else {
      bytes += codec.json(reading.value).bytes
    }
    if !isEvent { bytes += unit }
    bytes += #","time":""#.utf8
    reading.time.append(to: &bytes)
    bytes.append(UInt8(ascii: "\""))
    if let senderTime = reading.senderTime {
      bytes += #","sender_time":"#.utf8
      bytes += String(senderTime).utf8
    }
    bytes += #","sequence":"#.utf8
    bytes += String(sequence).utf8
    bytes += afterSequence
    return bytes
  }

  /// The reading with `"replayed":true` at its end, once: it is published later than it was received.
  static func markReplayed(_ reading: [UInt8]) -> [UInt8] {
    let mark = Array(#","replayed":true}"#.utf8)
    return reading.suffix(mark.count) == mark[...] ? reading : reading.dropLast() + mark
  }
}
