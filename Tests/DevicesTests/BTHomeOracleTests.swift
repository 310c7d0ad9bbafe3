import GATT
import JSON
import TestSupport
import Testing

/// `Tests/Field/bthome/frames.json`: what bthome-ble, the decoder of Home Assistant, reads in 1,700 frames of all ids, their
/// limits, several objects, cut and damaged ones. `scripts/bthome-oracle` makes it. Each difference is one of those that
/// docs/profiles.md lists.
@Suite struct BTHomeOracleTests {
  @Test func everyFrameHasTheSameValues() throws {
    let file = try JSONParser.parse(try shipped("Tests/Field/bthome/frames.json"))
    guard case .array(let frames)? = file["frames"] else { throw Failure("no frames") }
    #expect(frames.count > 1500)
    var explained: [String: Int] = [:]
    for frame in frames {
      let hex = try #require(frame["hex"]?.text)
      let isEncrypted = frame["encrypted"] == .bool(true)
      let found = (try? BeaconFrameTests.values(hex, key: isEncrypted ? BeaconFrameTests.key : nil)) ?? [:]
      let wanted = frame["values"] ?? [:]
      let names = Set(Self.names(found) + Self.names(wanted))
      for name in names where !Self.isEqual(found[name], wanted[name]) {
        if let reason = Self.reason(name, found[name], wanted[name], hex) {
          explained[reason, default: 0] += 1
        } else {
          Issue.record(
            "\(hex): \(name): \(String(describing: found[name])), \(String(describing: wanted[name]))")
        }
      }
    }
    #expect(Set(explained.keys) == ["limits", "hold", "rounding"], "\(explained)")
  }

  private static func names(_ json: JSONValue) -> [String] {
    if case .object(let object) = json { object.names } else { [] }
  }

  private static func number(_ json: JSONValue?) -> Double? {
    switch json {
    case .integer(let number): Double(number)
    case .number(let number): number
    case .null, .bool, .string, .array, .object, nil: nil
    }
  }

  private static func isEqual(_ one: JSONValue?, _ other: JSONValue?) -> Bool {
    if let one = number(one), let other = number(other) { return abs(one - other) < 1e-9 }
    // An event that is a word alone.
    return one == other || one.flatMap { $0["event"] } != nil && one?["event"] == other?["event_type"]
  }

  /// Why they differ; nil: they must not.
  private static func reason(_ name: String, _ own: JSONValue?, _ other: JSONValue?, _ hex: String) -> String?
  {
    if let number = number(other), own == nil || own == .null {
      let quantity = ["battery", "humidity", "moisture", "temperature", "dew_point"].first(
        where: name.hasPrefix)
      switch quantity {
      case "temperature", "dew_point": return number < -100 ? "limits" : nil
      case .some: return number > 100 ? "limits" : nil
      case nil: return nil
      }
    }
    if other == nil, own?["event"]?.text == "hold_press", hex.contains("3afe") { return "hold" }
    if let own = number(own), let other = number(other), abs(own - other) < 0.0501, hex.contains("58") {
      return "rounding"
    }
    return nil
  }
}
