import TestSupport
import Testing

/// Micro:bits that join for good, and show which one they are.
@Suite struct JoinTests {
  @Test("While it is permitted, a micro:bit that no entry matches is added for good, and no other")
  func permitJoin() async throws {
    var plan = Plan(devices: 2, entries: #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#)
    plan.simulator = ["--period", "20"]
    try await withFixture(plan) { fixture in
      try await fixture.online("kitchen")
      let other = try await fixture.simulator.device(1)
      let letters = String(other.name.dropLast().suffix(5))
      #expect(try await fixture.perform("devices").array?.count == 1)
      var mark = try fixture.observer.mark
      let (status, text) = try await fixture.command(["permit-join", "1000"])
      #expect(status == 0 && text.contains("in the next 1000 s are added"), "\(text)")
      let info = try await fixture.message("\(fixture.bridge)/info", after: mark) {
        $0.text.contains(#""permit_join":true"#)
      }
      #expect(try info.json()["permit_join_end"]?.string != nil)
      try await fixture.online(letters, after: mark)
      // A removed one does not join again at once.
      try await fixture.perform("device/remove", #"{"id":"\#(letters)"}"#)
      #expect(try await fixture.perform("devices").array?.count == 1)
      mark = try fixture.observer.mark
      try await fixture.perform("device/add", #"{"identifier":"\#(other.address)"}"#)
      try await fixture.online(letters, after: mark)
      mark = try fixture.observer.mark
      #expect(try await fixture.perform("permit_join", #"{"time":0}"#)["time"]?.int == 0)
      _ = try await fixture.message("\(fixture.bridge)/info", after: mark) {
        $0.text.contains(#""permit_join":false"#)
      }
      // As by device/add, it is known after a restart.
      mark = try fixture.observer.mark
      try await fixture.restartGateway()
      try await fixture.online(letters, after: mark)
      #expect(try await fixture.check().contains("added by a request"))
      for (payload, reason) in [
        (#"{"time":3601}"#, "time: 3601 is above 3600"), (#"{"time":-1}"#, "time: -1 is below 0"),
        (
          #"{"device":"kitchen"}"#,
          #"device: "kitchen" is not a Bluetooth address (example: C5:A1:B2:C3:D4:E5)"#
        ),
      ] { #expect(try await fixture.refusal("permit_join", payload) == reason) }
      for (words, reason) in [
        (["permit-join", "an hour"], "whole number of seconds"), (["permit-join", "1", "2"], "2"),
      ] {
        let (status, text) = try await fixture.command(words)
        #expect(status == 64 && text.contains(reason), "\(text)")
      }
    }
  }
}
