import TestSupport
import Testing

/// What programs send by UART, each line of Tests/Field/lines.tsv by a micro:bit of its own.
@Suite struct UARTValuesTests {
  private static let uart = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"

  @Test("Each format of the field has the values that it must have, and no others")
  func linesOfTheField() async throws {
    var plan = Plan(devices: FieldLine.all.count, period: 1000)
    plan.simulator = ["--services", "temperature,uart"]
    try await withFixture(plan) { fixture in
      let devices = try await fixture.simulator.devices()
      for device in devices { try await fixture.online(device.id) }
      for _ in 1...3 {
        for (index, line) in FieldLine.all.enumerated() { try await Self.send(line, by: index, fixture) }
        // A line without an end lasts half a second: nothing reports its end.
        try await Task.sleep(for: .milliseconds(1100))
      }
      let expected = try FieldLine.all.map(Self.payloads)
      for (device, payloads) in zip(devices, expected) {
        for (key, payload) in payloads { try await fixture.message("\(device.id)/values/\(key)", payload) }
      }
      let retained = try await fixture.retained()
      for (index, device) in devices.enumerated() {
        let prefix = "\(device.id)/values/"
        let topics = retained.keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
        #expect(Set(topics) == Set(expected[index].keys), "\(FieldLine.all[index])")
      }
    }
  }

  /// As the file says, but for the pauses within a line: half a second ends it, and that a busy machine may take.
  /// `ProgramValueTests` has them.
  private static func send(_ line: FieldLine, by index: Int, _ fixture: Fixture) async throws {
    let values = line.notifications.map { bytes in
      bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
    try await fixture.simulator.notify(index, uart, values)
  }

  private static func payloads(_ line: FieldLine) throws -> [String: String] {
    guard case .object(let values) = try JSON.parse(line.values) else { throw Failure("no object") }
    return values.mapValues { $0.string ?? $0.text }
  }

  @Test("Lines with another number of columns than the entry names are said once in the log")
  func otherColumns() async throws {
    var plan = Plan()
    plan.simulator = ["--services", "temperature,uart"]
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"pot","values":{"columns":["seq","temp"]}}"#
    try await withFixture(plan) { fixture in
      try await fixture.online("pot")
      for line in ["1,20", "2,20,5", "3,20,6", "4,21", "5,21"] {
        let hex = (line + "\n").utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try await fixture.simulator.control(
          #"{"op":"value","i":0,"characteristic":"\#(Self.uart)","hex":"\#(hex)"}"#)
      }
      try await fixture.message("pot/values/seq", "5")
      let refusal = #"more or fewer numbers than "columns" in its entry names"#
      try await fixture.logged(refusal)
      let lines = try fixture.lines(with: refusal)
      #expect(lines.count == 1 && lines[0].contains("2,20,5") && lines[0].contains("pot"), "\(lines)")
    }
  }

  @Test(
    "Devices, areas and values may have names in any script, in topics, commands, requests and Home Assistant"
  )
  func names() async throws {
    var plan = Plan()
    plan.simulator = ["--services", "temperature,uart"]
    plan.entries =
      #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"온도","name":"온도 🌡","area":"Küche العربية"}"#
    try await withFixture(plan) { fixture in
      func set(_ topic: String, _ value: String, _ status: String, of id: String, _ property: String)
        async throws
      {
        let mark = try fixture.observer.mark
        try await fixture.observer.publish("microbit/\(topic)/set", value)
        try await fixture.message("\(id)/\(property)/result", after: mark) {
          (try? $0.json())?["status"]?.string == status
        }
      }
      try await fixture.online("온도")
      try await set("온도/period", "2000", "applied", of: "온도", "period")
      try await set("area/kueche-العربية/period", "3000", "applied", of: "온도", "period")
      _ = try await fixture.perform("device/rename", #"{"id":"온도","to":"температура"}"#)
      try await fixture.online("температура")
      try await fixture.message("온도/info", "")
      for _ in 1...2 {
        try await fixture.simulator.control(
          #"{"op":"value","i":0,"characteristic":"\#(Self.uart)","hex":"ec98a8eb8f843a32310a"}"#)
      }
      try await fixture.message("температура/values/온도", "21")
      try await set("температура/values/온도", "5", "sent", of: "температура", "values/온도")
      _ = try await fixture.observer.message(
        "homeassistant/device/ble_d05a0000c0de/config", within: Fixture.patience
      ) {
        let sensor = (try? $0.json())?["cmps"]?["value-UC628_UB3C4_"]
        return sensor?["name"]?.string == "온도"
          && sensor?["stat_t"]?.string == "microbit/температура/values/온도"
      }
      let answer = try await fixture.perform("value/remove", #"{"id":"температура","property":"values/온도"}"#)
      #expect(answer["property"]?.string == "values/온도")
    }
  }
}
