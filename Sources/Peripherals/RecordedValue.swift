import Configuration
import GATT
import JSON
import Log

/// A value of a recording, and the time until the next one.
struct RecordedValue: Sendable, Hashable {
  let value: Value
  let wait: Duration

  /// The size of the largest file in bytes.
  private static let longestFile = 64 << 20
  /// The columns of a CSV file by `microbit-gateway watch --csv`.
  private static let columns = ["time", "device", "property", "value"]

  /// The values of a property in a CSV file with the columns `time` (RFC 3339, in UTC), `device`, `property` and
  /// `value`. The last value is followed by the first one, after the same interval as before the last.
  static func read(_ path: String, _ property: Property) throws(PeripheralError) -> [RecordedValue] {
    let bytes: [UInt8]
    do throws(FileProblem) {
      bytes = try FileProblem.read(path, limit: longestFile)
    } catch {
      throw PeripheralError("\(path): \(error)")
    }
    do throws(PeripheralError) {
      return try values(bytes, property)
    } catch {
      throw PeripheralError("\(path):\(error)")
    }
  }

  /// Errors begin with the number of the line.
  private static func values(
    _ bytes: [UInt8], _ property: Property
  ) throws(PeripheralError) -> [RecordedValue] {
    let rows = try CSV.rows(bytes)
    guard rows.first?.fields.starts(with: columns) == true else {
      throw PeripheralError("1: the first line is not \(columns.joined(separator: ","))")
    }
    var found: [(time: Timestamp, value: Value)] = []
    var device: String?
    for row in rows.dropFirst() {
      func problem(_ text: String) -> PeripheralError { PeripheralError("\(row.line): \(text)") }
      guard row.fields.count >= columns.count else {
        throw problem("\(row.fields.count) columns instead of \(columns.count)")
      }
      guard row.fields[2] == property.name else { continue }
      if let device, device != row.fields[1] {
        throw problem(
          "values of \(Excerpt(row.fields[1])) besides \(Excerpt(device)): keep those of one device")
      }
      device = row.fields[1]
      let text = row.fields[0]
      let isOfWholeSeconds = text.hasSuffix("Z") && !text.utf8.contains(UInt8(ascii: "."))
      guard let time = Timestamp(isOfWholeSeconds ? "\(text.dropLast()).000Z" : text) else {
        throw problem("\(Excerpt(text)) is not a time such as 2026-11-22T10:30:15.000Z")
      }
      if let last = found.last, time < last.time {
        throw problem("the time is before that of the line above")
      }
      do throws(PeripheralError) {
        found.append((time, try property.value(text: row.fields[3])))
      } catch {
        throw problem("\(error)")
      }
    }
    guard !found.isEmpty else { throw PeripheralError("1: there is no value of \(property.name)") }
    var waits = zip(found, found.dropFirst()).map { $1.time.milliseconds - $0.time.milliseconds }
    waits.append(waits.last ?? 1000)
    // Values of the same time follow each other at once; the minimum prevents an endless loop.
    return zip(found, waits).map { RecordedValue(value: $0.value, wait: .milliseconds(max($1, 1))) }
  }
}

/// Comma-separated values (RFC 4180).
enum CSV {
  /// A row, and the line on which it begins, from 1.
  struct Row: Equatable {
    let line: Int
    let fields: [String]
  }

  /// The rows that are not empty.
  static func rows(_ bytes: [UInt8]) throws(PeripheralError) -> [Row] {
    var rows: [Row] = []
    var fields: [String] = []
    var field: [UInt8] = []
    var line = 1
    var start = 1
    var isQuoted = false
    var rest = bytes[...]
    func endField() {
      fields.append(String(decoding: field, as: UTF8.self))
      field = []
    }
    func endRow() {
      endField()
      if fields != [""] { rows.append(Row(line: start, fields: fields)) }
      fields = []
      start = line
    }
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\n") { line += 1 }
      switch byte {
      case UInt8(ascii: "\"") where isQuoted:
        if rest.first == byte {
          field.append(byte)
          rest.removeFirst()
        } else {
          isQuoted = false
        }
      case _ where isQuoted: field.append(byte)
      case UInt8(ascii: "\"") where field.isEmpty: isQuoted = true
      case UInt8(ascii: ","): endField()
      case UInt8(ascii: "\r") where rest.first == UInt8(ascii: "\n"): break
      case UInt8(ascii: "\n"): endRow()
      default: field.append(byte)
      }
    }
    guard !isQuoted else { throw PeripheralError("\(start): the quotation mark is not closed") }
    endRow()
    return rows
  }
}
