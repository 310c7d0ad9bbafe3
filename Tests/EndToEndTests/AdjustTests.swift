import TestSupport
import Testing

/// Values that are adjusted before they are published.
@Suite struct AdjustTests {
  @Test("An adjusted temperature is the same on all topics and at the terminal, also after a restart")
  func adjust() async throws {
    var plan = Plan(
      entries:
        #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","adjust":{"temperature":{"unit":"K"}}}"#)
    plan.simulator = ["--generate", "temperature=constant:21"]
    try await withFixture(plan) { fixture in
      try await fixture.message("kitchen/temperature", "21")
      // After its temperature, if the link is there before all that the broker retains.
      try await fixture.online("kitchen")
      var mark = try fixture.observer.mark
      // As Home Assistant's number sends it.
      let data = try await fixture.perform(
        "device/options", #"{"id":"kitchen","options":{"adjust":{"temperature":{"offset":-4.5}}}}"#)
      #expect(data["adjust"]?["temperature"]?["offset"] == .double(-4.5))
      try await fixture.message("kitchen/temperature", "16.5", after: mark)
      let reading = try await fixture.message("kitchen/readings", after: mark) { $0.text.contains("16.5") }
      #expect(reading.text.contains(#""unit":"K""#))
      let info = try await fixture.message("kitchen/info", after: mark) { $0.text.contains("offset") }
      #expect(
        try info.json()["adjust"]
          == .object(["temperature": .object(["unit": .string("K"), "offset": .double(-4.5)])]))
      #expect(try fixture.stayedOnline("kitchen", after: mark))
      #expect(try await fixture.command(["read", "kitchen", "temperature"]).text.contains("16.5 K"))
      #expect(
        try await fixture.refusal(
          "device/options", #"{"id":"kitchen","options":{"adjust":{"period":{"offset":1}}}}"#)
          == "options.adjust.period.offset: period can be set: it has no offset")
      mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.message("kitchen/readings", after: mark) {
        $0.text.contains(#""value":16.5,"unit":"K""#)
      }
    }
  }

  @Test("A value whose unit is changed has a topic under the next id of its device, before the next reading")
  func adjustAndRename() async throws {
    let entry = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#
    try await withFixture(Plan(period: 60_000, entries: entry)) { fixture in
      let value = try await fixture.message("kitchen/temperature").text
      try await fixture.perform(
        "device/options", #"{"id":"kitchen","options":{"adjust":{"temperature":{"unit":"K"}}}}"#)
      try await fixture.perform("device/rename", #"{"id":"kitchen","to":"attic"}"#)
      try await fixture.message("attic/temperature", value)
    }
  }

  @Test("A value that waits for the end of an interval is published when that is changed, and before a stop")
  func waitingValue() async throws {
    let plan = Plan(
      period: 50, entries: #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#)
    try await withFixture(plan) { fixture in
      try await fixture.message("kitchen/temperature")
      func adjust(_ adjustments: String) async throws {
        try await fixture.perform(
          "device/options", #"{"id":"kitchen","options":{"adjust":\#(adjustments)}}"#)
      }
      func receive(_ celsius: Int, thenSilent: Bool = false) async throws {
        try await fixture.simulator.control("silent", 0, #""on":false"#)
        try await fixture.simulator.control("temp", 0, #""v":\#(celsius)"#)
        try await fixture.message("kitchen/readings") { $0.text.contains(#""value":\#(celsius)"#) }
        if thenSilent { try await fixture.simulator.control("silent", 0) }
      }
      let slow = #"{"temperature":{"report":{"min_interval":3600000}}}"#
      try await adjust(slow)
      try await receive(24)
      try await receive(25, thenSilent: true)
      #expect(try fixture.observer.messages(on: "microbit/kitchen/temperature").last?.text != "25")
      try await adjust("null")
      try await fixture.message("kitchen/temperature", "25")

      try await adjust(slow)
      try await receive(26)
      try await receive(27)
      let mark = try fixture.observer.mark
      #expect(try await fixture.stopGateway() == 0)
      try await fixture.message("kitchen/temperature", "27", after: mark)
    }
  }
}
