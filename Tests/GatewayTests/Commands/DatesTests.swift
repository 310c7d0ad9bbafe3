import JSON
import Log
import Testing

@testable import Gateway

/// A time of another day is shown with its date.
@Suite struct DatesTests {
  private static let longAgo = Timestamp.now + .seconds(-9 * 86_400)

  private static func text(_ time: Timestamp) -> JSONValue { .string(time.description) }

  @Test func ofADeviceThatWentDaysAgo() {
    let device: JSONValue = ["id": "hall", "session": "absent", "offline_since": Self.text(Self.longAgo)]
    let line = DeviceList([device], gateway: "here").lines[1]
    #expect(line.contains(" offline since \(Self.longAgo.dated(on: nil)) "), "\(line)")
  }

  @Test func ofARecording() {
    let end = Self.longAgo + .seconds(1)
    let recording: JSONValue = [
      "name": "lesson-1", "started": Self.text(Self.longAgo), "ended": Self.text(end),
      "readings": .integer(7),
    ]
    let line = DeviceCommand.line(recording)
    let times = "from \(Self.longAgo.dated(on: nil)) to \(end.dated(on: Self.longAgo))"
    #expect(line.hasPrefix("lesson-1  \(times)  7 readings"), "\(line)")
  }
}
