import Configuration
import GATT
import JSON

/// The payloads of topics.
package enum Payload {
  /// `online` or `offline`: of a device, or of the gateway (its will as well).
  static func availability(_ isOnline: Bool) -> [UInt8] {
    Array((isOnline ? "online" : "offline").utf8)
  }

  /// A picture of bits as SVG: a red dot for each `#`, rows ending with `/`.
  static func image(_ picture: [UInt8]) -> [UInt8] {
    let rows = picture.split(separator: UInt8(ascii: "/"))
    let columns = rows.first?.count ?? 0
    var svg = """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(columns * 10) \(rows.count * 10)">\
      <rect width="100%" height="100%"/>
      """
    for (y, row) in rows.enumerated() {
      for (x, dot) in row.enumerated() where dot == UInt8(ascii: "#") {
        svg += #"<circle cx="\#(x * 10 + 5)" cy="\#(y * 10 + 5)" r="4" fill="red"/>"#
      }
    }
    return Array((svg + "</svg>").utf8)
  }

  /// The payload of a state's topic: a number, a word, a text as it is, JSON for a record or a list. As a command, it
  /// means the same value.
  package static func value(_ value: Value, _ codec: Codec) -> [UInt8] {
    if case .integer(let number) = value { return Array(String(number).utf8) }
    let json = codec.json(value)
    let payload = json.payload
    // An empty payload would delete the retained message; in a command, a payload in quotes is JSON.
    return payload.isEmpty || payload.first == UInt8(ascii: "\"") ? json.bytes : payload
  }
}
