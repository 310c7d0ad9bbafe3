import Glibc
import TestSupport
import Testing

/// A lesson that is recorded.
@Suite struct RecordTests {
  @Test("A recording survives the end of the gateway: each reading is in it once")
  func killedGateway() async throws {
    let port = try ReservedPort()
    var plan = Plan(devices: 2, period: 20)
    plan.more = #""http":{"enabled":true,"port":\#(port.number)}"#
    try await withFixture(plan) { fixture in
      let id = try await fixture.id()
      let first = try await fixture.reading(id) { $0.sequence > 0 }
      #expect(
        try await fixture.command(["record", "start", "Lesson 1"]).text.contains("recording as lesson-1"))
      #expect(try await fixture.refusal("record/start").contains("already"))
      try await fixture.moreReadings(id, 100)
      try await fixture.killGateway()
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.logged("the recording goes on")
      let next = try await fixture.reading(id, after: mark) { $0.sequence >= 100 }
      let running = try await fixture.perform("record/list").array?.first
      #expect(running?["name"]?.string == "lesson-1" && running?["ended"] == nil)
      let ended = try await fixture.perform("record/stop")
      #expect(ended["end"]?.string == "stop" && ended["lost"] == nil)
      let reply = try await HTTPReply("GET /api/record/lesson-1.csv", port: port.number)
      #expect(reply.headers.contains(#"Content-Disposition: attachment; filename="lesson-1.csv""#))
      let rows = reply.body.split(separator: "\r\n").dropFirst().map(String.init)
      #expect(rows.count == ended["readings"]?.int)
      // Those from before the gateway was connected to the broker come late.
      try await eventually("each reading since the restart") {
        let numbers = try fixture.readings(id).filter { $0.run == next.run }.map(\.sequence)
        return Set(numbers).count == numbers.max()
      }
      // Its readings by MQTT while it was recorded are all there, but for the last second before the end.
      let ours = rows.filter { $0.contains(",\(id),temperature,") }.map(Row.init)
      let published = try Dictionary(grouping: fixture.readings(id), by: \.run).mapValues {
        try $0.sorted { $0.sequence < $1.sequence }.map(Row.init)
      }
      let (before, after) = try (#require(published[first.run]), #require(published[next.run]))
      let restart = try #require(ours.firstIndex(of: after[0]))
      let begin = try #require(before.firstIndex(of: ours[0]))
      #expect(before[begin...].starts(with: ours[..<restart]))
      #expect(ours.count - restart >= 100 && after.starts(with: ours[restart...]))
      let wide = try await HTTPReply("GET /api/record/lesson-1.csv?layout=wide", port: port.number)
      #expect(wide.body.hasPrefix("time,"))
      #expect(wide.body.split(separator: "\r\n")[0].contains("\(id) temperature (°C)"))
      let printed = try await fixture.command(["record", "csv"]).text
      #expect(printed.split(separator: "\r\n").count == rows.count + 1)
      #expect(try await fixture.command(["record", "list"]).text.contains("lesson-1"))
    }
  }
  /// The time and the value of a reading.
  private struct Row: Equatable {
    let time: String
    let value: String

    init(_ row: String) {
      let cells = row.split(separator: ",").map(String.init)
      (time, value) = (cells[0], cells[3])
    }

    init(_ reading: Reading) throws {
      time = try #require(reading.message.json()["time"]?.string)
      value = "\(reading.value)"
    }
  }
}
