/// A line of the log.
///
/// Fields contain advertised names and payloads from the broker: these must not begin a new line, look like another
/// field, or send control sequences to the terminal.
struct LogLine {
  let level: LogLevel
  let component: String
  let message: String
  let fields: LogFields

  /// The maximum length in bytes: with the prefix below PIPE_BUF, so that it is written to a pipe at once.
  static let limit = 2048
  /// The maximum length of a value, so that one does not displace the others.
  static let valueLimit = 512

  // MARK: Text

  /// `level component: message key=value …` in UTF-8, without prefix and line end.
  /// - Parameter isColoured: for a terminal: the level is coloured.
  func text(isColoured: Bool = false) -> [UInt8] {
    let name = isColoured ? "\(level.colour)\(level.name)\(LogLevel.noColour)" : level.name
    var bytes: [UInt8] = []
    bytes.reserveCapacity(256)
    bytes += "\(name) \(component): ".utf8
    bytes.append(message, limit: LogLine.limit, as: .text)
    for (key, value) in fields {
      bytes += " \(key)=".utf8
      bytes.append(value: value.description)
    }
    bytes.cut(to: LogLine.limit)
    return bytes
  }

  // MARK: JSON

  /// An object with `time`, `level`, `component`, `message` and the fields; without line end.
  /// - Parameter time: RFC 3339.
  func json(time: String) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(256)
    bytes += "{\"time\":\"\(time)\",\"level\":\"\(level.name)\",\"component\":\"\(component)\"".utf8
    bytes.append(member: "message", message, limit: LogLine.limit / 2)
    for (key, value) in fields {
      var member: [UInt8] = []
      member.append(member: key, value, limit: LogLine.valueLimit)
      // The objects must be complete: what does not fit is left out.
      if bytes.count + member.count < LogLine.limit { bytes += member }
    }
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  // MARK: Journal

  /// An entry in the journal's native protocol: a line for each of its fields.
  /// - Parameter text: the line as displayed; without line ends, as the protocol then needs no lengths.
  func journalEntry(_ text: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count + 256)
    // The journal would otherwise show the name of the process, cut to 15 characters.
    bytes += "SYSLOG_IDENTIFIER=microbit-gateway\nPRIORITY=\(level.journalPriority)\nMESSAGE=".utf8
    bytes += text
    bytes.append(UInt8(ascii: "\n"))
    for (key, name) in [("device", "DEVICE"), ("address", "ADDRESS")] {
      guard let value = fields.first(where: { $0.key == key })?.value else { continue }
      bytes += "\(name)=".utf8
      bytes.append(value.description, limit: LogLine.valueLimit, as: .text)
      bytes.append(UInt8(ascii: "\n"))
    }
    return bytes
  }
}

extension [UInt8] {
  /// A member of an object: whole numbers and booleans as they are, anything else as a string.
  fileprivate mutating func append(member name: String, _ value: any CustomStringConvertible, limit: Int) {
    self += ",\"\(name)\":".utf8
    if value is any BinaryInteger || value is Bool {
      self += value.description.utf8
    } else {
      append(UInt8(ascii: "\""))
      append(value.description, limit: limit, as: .json)
      append(UInt8(ascii: "\""))
    }
  }
}
