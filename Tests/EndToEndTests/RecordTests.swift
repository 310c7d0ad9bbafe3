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
      try await fixture.moreReadings(id, 1)
      #expect(
        try await fixture.command(["record", "start", "Lesson 1"]).text.contains("recording as lesson-1"))
      #expect(try await fixture.refusal("record/start").contains("already"))
      try await fixture.moreReadings(id, 100)
      let gateway = try fixture.gateway
      gateway.signal(SIGKILL)
      _ = try await gateway.exitStatus(within: Fixture.patience)
      let mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.logged("the recording goes on")
      let next = try await fixture.reading(id, after: mark) { $0.sequence > 0 }
      try await fixture.reading(id, after: mark) { $0.run == next.run && $0.sequence >= next.sequence + 100 }
      let running = try await fixture.perform("record/list").array?.first
      #expect(running?["name"]?.string == "lesson-1" && running?["ended"] == nil)
      let ended = try await fixture.perform("record/stop")
      #expect(ended["end"]?.string == "stop" && ended["lost"] == nil)
      let reply = try await HTTPReply("GET /api/record/lesson-1.csv", port: port.number)
      #expect(reply.headers.contains(#"Content-Disposition: attachment; filename="lesson-1.csv""#))
      let rows = reply.body.split(separator: "\r\n").dropFirst().map(String.init)
      #expect(rows.count == ended["readings"]?.int && Set(rows).count == rows.count)
      // Its readings by MQTT while it was recorded are all there, but for the last second before the end.
      let ours = rows.filter { $0.contains(",\(id),temperature,") }
      let published = try fixture.readings(id)
      let first = try #require(published.firstIndex { reading in ours[0].hasSuffix(",\(reading.value),°C") })
      #expect(ours.count <= published.count - first)
      let later = published.filter { $0.run == next.run && $0.sequence > next.sequence }.map(\.value)
      let recorded = ours.compactMap { Int($0.split(separator: ",")[3]) }
      let last = try #require(recorded.last)
      let expected = try Array(later[...#require(later.lastIndex(of: last))])
      #expect(expected.count >= 90 && recorded.suffix(expected.count) == expected[...])
      let wide = try await HTTPReply("GET /api/record/lesson-1.csv?layout=wide", port: port.number)
      #expect(wide.body.hasPrefix("time,"))
      #expect(wide.body.split(separator: "\r\n")[0].contains("\(id) temperature (°C)"))
      let printed = try await fixture.command(["record", "csv"]).text
      #expect(printed.split(separator: "\r\n").count == rows.count + 1)
      #expect(try await fixture.command(["record", "list"]).text.contains("lesson-1"))
    }
  }
}
