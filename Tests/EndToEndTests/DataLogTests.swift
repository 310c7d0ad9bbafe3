import TestSupport
import Testing

/// The data log of a micro:bit V2, from the air to MQTT and the terminal.
@Suite struct DataLogTests {
  private static func row(_ row: Int, _ run: Int, _ time: String, _ values: String, _ more: String = "")
    -> String
  {
    #"{"row":\#(row),"run":\#(run),"time":\#(time),"time_unit":"s","values":\#(values)\#(more)}"#
  }

  @Test(
    "New rows are published once, through an outage of the broker and a restart; the log is printed as one table"
  )
  func rowsAndTable() async throws {
    var plan = Plan()
    plan.simulator = ["--services", "temperature,log", "--log-ms", "2"]
    plan.entries = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"pot","log":true}"#
    try await withFixture(plan) { fixture in
      func log(_ text: String) async throws {
        let hex = text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try await fixture.simulator.control(#"{"op":"log","i":0,"hex":"\#(hex)"}"#)
      }
      var rows = [
        Self.row(1, 1, "0.5", #"{"temperature":21}"#), Self.row(2, 1, "10.5", #"{"temperature":22}"#),
      ]
      try await fixture.message("pot/log", rows[1])

      try await fixture.killBroker()
      try await log("Time (seconds),temperature,=light\n1,,7\n")
      try await fixture.simulator.control(#"{"op":"disconnect","i":0}"#)
      try await fixture.stored(#""row":3"#)
      try await fixture.restartBroker()
      rows.append(Self.row(3, 2, "1", #"{"=light":7}"#, #","replayed":true"#))
      try await fixture.message("pot/log", rows[2])

      try #require(try await fixture.stopGateway() == 0)
      try await log("2,23,\n")
      try fixture.startGateway()
      rows.append(Self.row(4, 2, "2", #"{"temperature":23}"#))
      try await fixture.message("pot/log", rows[3])
      let messages = try fixture.observer.messages(on: "microbit/pot/log")
      #expect(messages.map(\.text) == rows && !messages.contains { $0.retain })

      let (status, table) = try await fixture.command(["log", "pot"])
      let lines = ["run,Time (seconds),temperature,'=light", "1,0.5,21,", "1,10.5,22,", "2,1,,7", "2,2,23,"]
      #expect(status == 0 && table.split(whereSeparator: \.isNewline).map(String.init) == lines, "\(table)")
      let (_, raw) = try await fixture.command(["log", "pot", "--raw"])
      #expect(raw.hasPrefix("Time (seconds),temperature\n0.5,21\n"), "\(raw)")
    }
  }
}
