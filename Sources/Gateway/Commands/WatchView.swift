import JSON
import Log

/// What `watch` shows: a line for each device with its newest values.
struct WatchView {
  private struct Row {
    var name = ""
    /// The state; nil: the device was never online.
    var state: String?
    /// The newest values by property, in the order in which they came.
    var values: [(property: String, text: String)] = []
    var last = ""
  }

  private var order: [String] = []
  private var rows: [String: Row] = [:]

  /// Handles a line from the gateway.
  /// - Returns: the line to display; nil: none.
  mutating func update(_ line: JSONValue) -> String? {
    guard let device = line["device"]?.text else {
      return line["dropped"] == nil ? nil : "…"
    }
    if rows[device] == nil { order.append(device) }
    var row = rows[device] ?? Row()
    defer {
      let isRemoved = line["session"] == "removed"
      rows[device] = isRemoved ? nil : row
      if isRemoved { order.removeAll { $0 == device } }
    }
    let time = Self.clock(line["time"]?.text)
    guard let property = line["property"]?.text, let value = line["value"] else {
      row.name = line["name"]?.shown ?? row.name
      let isOnline = line["online"] == .bool(true)
      let before = row.state
      // A device that has not been online yet is not reported as offline.
      row.state = isOnline ? "online" : before.map { _ in "offline" }
      return row.state == before ? nil : "\(time)  \(device)  \(row.state ?? "")"
    }
    let text = value.shown(unit: line["unit"])
    if let index = row.values.firstIndex(where: { $0.property == property }) {
      row.values[index].text = text
    } else {
      row.values.append((property, text))
    }
    row.last = time
    return "\(time)  \(device)  \(property) \(text)"
  }

  /// The table: a row for each device, whose values may take several lines; cut to the terminal.
  func lines(mostRows: Int = .max, columns: Int = TerminalSize.columns) -> [String] {
    guard let names = order.map(\.count).max() else { return ["no device yet …"] }
    let width = max(20, columns - 1)
    var lines: [String] = []
    for (index, device) in order.enumerated() {
      let row = rows[device] ?? Row()
      let texts = row.values.map { "\($0.property) \($0.text)" }
      let block = Self.block(
        "\(padded(device, names))  \(padded(row.state ?? "offline", 7))  \(padded(row.last, 8))",
        texts.isEmpty ? [row.name.isEmpty ? "…" : row.name] : texts, width: width)
      // The line that says how many are left out needs a place.
      guard lines.count + block.count + (index + 1 < order.count ? 1 : 0) <= mostRows else {
        return lines + ["… and \(order.count - index) more"]
      }
      lines += block
    }
    return lines
  }

  /// The values after `head`, in as many lines as they need.
  private static func block(_ head: String, _ values: [String], width: Int) -> [String] {
    var lines = [head]
    for value in values {
      if lines[lines.count - 1].count + 2 + value.count > width, lines[lines.count - 1] != head {
        lines.append(padded("", head.count))
      }
      lines[lines.count - 1] += "  \(value)"
    }
    return lines.map { String($0.prefix(width)) }
  }

  /// The local time of day of `2026-01-02T03:04:05.678Z`, or now.
  static func clock(_ text: String?) -> String {
    String((text.flatMap { Timestamp($0) } ?? .now).clock.prefix(8))
  }
}
