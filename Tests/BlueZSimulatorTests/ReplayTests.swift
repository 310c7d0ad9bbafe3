import DBus
import Glibc
import TestSupport
import Testing

@testable import BlueZSimulator

/// Sessions recorded on a real bluetoothd 5.66: the same calls, and what befell the micro:bit, must bring the
/// same signals and answers in the same order, value for value.
@Suite struct ReplayTests {
  @Test(arguments: [
    "session", "acquire", "writes", "notify_calls", "discovery_calls", "unknown", "connecttwice",
    "vanish_notify", "disc_notify", "poweroff", "poweroff_discovery", "unplug", "daemon_term",
    "reconnect_during_disconnect", "outofrange", "outofrange_expire", "remove_connected",
    "connect_while_scanning",
  ])
  func recordedSession(_ name: String) throws {
    let folder = String(#filePath.prefix(#filePath.utf8.count - "ReplayTests.swift".utf8.count))
    let recording = try read("\(folder)recordings/\(name).tsv")
    #expect(recording.count > 10)
    let fixture = Fixture()
    fixture.model.peripherals[0].values.microBit?.fixedTemperature = 20
    for (number, line) in recording.enumerated() {
      let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      switch fields[0] {
      case ">":
        var arguments = fields.dropFirst(4).map(Self.value)
        if fields[3].hasSuffix(".Properties.Set") { arguments[2] = .variant(arguments[2]) }
        fixture.call(fields[1], fields[2], fields[3], arguments)
      case "-": fixture.give { $0.clientLeft(fields[1]) }
      case "*": perform(fields[1], in: fixture)
      case "~":
        guard next(fixture, notification: true) != nil else {
          Issue.record("\(name).tsv:\(number + 1): no notification came")
          return
        }
      default:
        let actual = next(fixture)
        guard actual == line else {
          Issue.record(
            "\(name).tsv:\(number + 1): recorded\n  \(line)\nbut came\n  \(actual ?? "nothing")")
          return
        }
      }
    }
    #expect(fixture.takeLines() == [])
  }

  /// The next line, after as much time as it takes.
  private func next(_ fixture: Fixture, notification: Bool = false) -> String? {
    while true {
      while let line = fixture.takeLine() {
        // Notifications come when they come; a value that an answer follows has been read.
        let isValue = line.contains("/char0016\tPropertiesChanged\t") && line.contains("{Value=")
        let isNotification = isValue && fixture.lines.first?.hasPrefix("<\t") != true
        if isNotification == notification { return line }
        if notification { return nil }
      }
      guard fixture.advanceToNextEvent(within: .seconds(60)) else { return nil }
    }
  }

  private func perform(_ what: String, in fixture: Fixture) {
    switch what {
    case "vanish": fixture.give { $0.vanish(0) }
    case "return": fixture.give { $0.comeBack(0) }
    case "disconnect": fixture.give { $0.hangUp($0.key(ofPeripheral: 0)) }
    case "adv off": fixture.give { $0.setStrength(0, nil, of: 0) }
    case "adv on": fixture.give { $0.setStrength(0, -60, of: 0) }
    case "unplug": fixture.give { $0.unplug(0) }
    case "plug": fixture.give { $0.replug(0) }
    case "terminate":
      fixture.give { $0.terminate() }
      fixture.give { $0.vanish() }
    case "start": fixture.give { $0.restart() }
    case "close":
      for channel in fixture.channels { fixture.give { $0.channelClosed(channel) } }
    default: Issue.record("an unknown operation: \(what)")
    }
  }

  // MARK: Reading

  private func read(_ path: String) throws -> [String] {
    guard let file = fopen(path, "r") else { throw Failure("\(path): errno \(errno)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// A recorded argument: `s:text`, `ay:f401`, `{name=s:text;other=b:true}`.
  private static func value(_ text: String) -> DBusValue {
    if text.hasPrefix("{") {
      let entries = text.dropFirst().dropLast().split(separator: ";").map { entry in
        let parts = entry.split(separator: "=", maxSplits: 1).map(String.init)
        return DBusValue.Entry(.string(parts[0]), .variant(value(parts[1])))
      }
      return .dictionary(key: "s", value: "v", entries)
    }
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    switch parts[0] {
    case "s": return .string(parts[1])
    case "o": return .objectPath(parts[1])
    case "b": return .boolean(parts[1] == "true")
    case "n": return .int16(Int16(parts[1]) ?? 0)
    case "q": return .uint16(UInt16(parts[1]) ?? 0)
    case "i": return .int32(Int32(parts[1]) ?? 0)
    case "as": return .strings(parts[1].split(separator: ",").map(String.init))
    case "ay":
      let digits = parts[1].compactMap(\.hexDigitValue)
      return .bytes(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    default:
      Issue.record("an argument of a type that no recording has: \(text)")
      return .byte(0)
    }
  }
}
