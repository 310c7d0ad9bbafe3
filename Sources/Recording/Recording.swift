import Configuration
import JSON
import Log

/// The readings of a lesson: what is known of their file.
package struct Recording: Sendable, Equatable {
  /// Why a recording has ended.
  package enum End: String, Sendable {
    /// A user has ended it.
    case stop
    /// The recording has lasted for ``RecordingLimits/longest``.
    case time
    /// The recording's file has ``RecordingLimits/mostBytes``.
    case size
    /// The disk is full, or cannot be written.
    case disk
  }

  /// The name of its file, and in requests.
  package let name: String
  package let started: Timestamp
  /// The time of its end; nil: it goes on.
  package internal(set) var ended: Timestamp?
  /// Why it has ended; nil: it goes on, or its file does not say it.
  package internal(set) var end: End?
  /// How many readings it has; nil: its file does not say it.
  package internal(set) var readings: Int?
  /// The size of its file.
  package internal(set) var bytes = 0
  /// Readings that were left out, as the disk was too slow, or there were too many columns.
  package internal(set) var lost = 0

  /// The name that is `text`, or that a recording gets which is started with it: `Lesson 1` is `lesson-1`.
  package static func named(_ text: String, among names: [String]) -> String? {
    names.first { $0 == text } ?? names.first { $0 == TopicWord.word(text) }
  }

  /// The recording as requests return it.
  package var json: JSONValue {
    [
      "name": .string(name), "started": .string(started.description),
      "ended": ended.map { .string($0.description) }, "end": end.map { .string($0.rawValue) },
      "readings": readings.map(JSONValue.integer), "bytes": .integer(bytes),
      "lost": lost > 0 ? .integer(lost) : nil,
    ]
  }
}

/// What a reading is of: a property of a device.
package struct RecordedColumn: Sendable, Hashable {
  let device: String
  let property: String
  let unit: String?
  /// The fields of a record.
  let fields: [String]?
  /// The units of fields that have one of their own.
  var units: [String: String] = [:]

  /// The most columns of a recording; readings of further ones are left out.
  static let most = 1000

  /// The titles of the columns in a table: one, or one for each field.
  var titles: [String] {
    func title(_ name: String, unit: String?) -> String {
      "\(device) \(name)\(unit.map { " (\($0))" } ?? "")"
    }
    return fields.map { $0.map { title("\(property).\($0)", unit: units[$0] ?? unit) } }
      ?? [title(property, unit: unit)]
  }
}

/// A line of the file of a recording, which is JSON. A file begins with its start; a column precedes its first reading.
enum RecordingLine: Equatable {
  case start(Timestamp)
  /// - Parameter number: which its readings have; nil, in files of earlier versions: its place among the columns.
  case column(RecordedColumn, number: Int? = nil)
  /// - Parameter offset: the milliseconds since the start.
  case reading(offset: Int, column: Int, value: JSONValue)
  case end(Timestamp, Recording.End, readings: Int, lost: Int)

  /// The times of lines, in milliseconds since 1970, and since or before the start: up to the year 9999.
  static let times = 0...253_402_300_799_999

  /// What a line that is a reading begins with.
  static let reading = UInt8(ascii: "[")

  var bytes: [UInt8] {
    let json: JSONValue =
      switch self {
      case .start(let time): ["started": .integer(Int(time.milliseconds))]
      case .column(let column, let number):
        [
          "column": number.map(JSONValue.integer), "device": .string(column.device),
          "property": .string(column.property),
          "unit": column.unit.map(JSONValue.string),
          "fields": column.fields.map { .array($0.map(JSONValue.string)) },
          "units": column.units.isEmpty ? nil : .object(column.units.mapValues(JSONValue.string)),
        ]
      case .reading(let offset, let column, let value): [.integer(offset), .integer(column), value]
      case .end(let time, let end, let readings, let lost):
        [
          "ended": .integer(Int(time.milliseconds)), "end": .string(end.rawValue),
          "readings": .integer(readings),
          "lost": .integer(lost),
        ]
      }
    return json.bytes + [UInt8(ascii: "\n")]
  }

  /// Reads a line; nil for what is none.
  init?(_ bytes: some Collection<UInt8>) {
    guard let json = try? JSONParser.parse(Array(bytes)) else { return nil }
    if case .array(let parts) = json {
      guard parts.count == 3, let offset = parts[0].integer, let column = parts[1].integer,
        (-Self.times.upperBound...Self.times.upperBound).contains(offset)
      else { return nil }
      self = .reading(offset: offset, column: column, value: parts[2])
    } else if let device = json["device"]?.text, let property = json["property"]?.text {
      let (number, fields) = (json["column"]?.integer, json["fields"].map { $0.elements.compactMap(\.text) })
      guard number.map((0..<RecordedColumn.most).contains) ?? true else { return nil }
      self = .column(
        RecordedColumn(
          device: device, property: property, unit: json["unit"]?.text,
          fields: fields,
          units: (fields ?? []).reduce(into: [:]) { $0[$1] = json["units"]?[$1]?.text }), number: number)
    } else if let ended = json["ended"]?.integer, Self.times.contains(ended),
      let end = json["end"]?.text.flatMap(Recording.End.init)
    {
      self = .end(
        Timestamp(milliseconds: Int64(ended)), end, readings: json["readings"]?.integer ?? 0,
        lost: json["lost"]?.integer ?? 0)
    } else if let started = json["started"]?.integer, Self.times.contains(started) {
      self = .start(Timestamp(milliseconds: Int64(started)))
    } else {
      return nil
    }
  }
}
