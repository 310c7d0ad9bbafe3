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
      // They may come before the broker is there.
      _ = try await fixture.message("pot/log") { $0.text.contains(#""row":2,"#) }
      // The gateway has the broker's acknowledgements before this request: otherwise it would publish the rows again.
      _ = try await fixture.request("health")

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
      let replayed = #","replayed":true"#
      #expect(
        messages.map { $0.text.replacing(replayed, with: "") }
          == rows.map { $0.replacing(replayed, with: "") })
      #expect(!messages.contains { $0.retain })

      let (status, table) = try await fixture.command(["log", "pot"])
      let lines = ["run,Time (seconds),temperature,'=light", "1,0.5,21", "1,10.5,22", "2,1,,7", "2,2,23,"]
      #expect(status == 0 && table.split(whereSeparator: \.isNewline).map(String.init) == lines, "\(table)")
      let (_, raw) = try await fixture.command(["log", "pot", "--raw"])
      #expect(raw.hasPrefix("Time (seconds),temperature\n0.5,21\n"), "\(raw)")
      try await log("3,\u{1B}[2J,\n")
      let shown = try TerminalProcess(
        try program("microbit-gateway"),
        ["log", "pot", "--raw", "--config", fixture.folder.path + "/config.json"],
        environment: fixture.environment)
      #expect(try await shown.exitStatus() == 0 && shown.text.contains("3,·[2J,"), "\(shown.text)")
    }
  }

  @Test("The gateway that has the micro:bit next goes on where the last one has ended, and back again")
  func severalGateways() async throws {
    let plans = ["ground", "attic"].map { gateway in
      var plan = Plan.fixture(gateway, area: gateway)
      plan.simulator += ["--services", "temperature,log", "--log-ms", "2"]
      plan.entries = #"{"match":{"identifier":"\#(Cluster.address)"},"id":"pot","log":true}"#
      return plan
    }
    try await withCluster(plans) { cluster in
      func log(_ text: String) async throws {
        let hex = text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        // Each simulator has a micro:bit of its own, with the same log.
        for fixture in cluster.fixtures {
          try await fixture.simulator.control(#"{"op":"log","i":0,"hex":"\#(hex)"}"#)
        }
      }
      var (number, rows): (Int, [String]) = (2, [])
      for (from, to) in [(1, 0), (0, 1), (1, 0)] {
        let mark = rows.isEmpty ? 0 : try cluster[0].observer.mark
        if !rows.isEmpty {
          number += 1
          try await log("\(10 * number),\(number)\n")
          try await cluster[from].simulator.control("vanish", 0)
          try await cluster[to].simulator.control("return", 0)
        }
        let row = #""row":\#(number),"#
        _ = try await cluster[0].message("pot/log", after: mark) { $0.text.contains(row) }
        rows += rows.isEmpty ? [1, 2].map { "\($0)" } : ["\(number)"]
        _ = try await cluster[0].message("pot/info", after: mark) {
          $0.text.contains(#""owner":"\#(to == 0 ? "ground" : "attic")""#)
            && $0.text.contains(row)
        }
        for fixture in cluster.fixtures { try await fixture.synchronizeGateway() }
      }
      let published = try cluster[0].observer.messages(on: "microbit/pot/log").map {
        try $0.json()["row"]?.int ?? 0
      }
      #expect(published.map(String.init) == rows)
    }
  }
}
