import Glibc
import TestSupport
import Testing

/// The messages for Home Assistant at the broker; Tests/HomeAssistant tests how Home Assistant handles them.
@Suite struct HomeAssistantTests {
  private static let status = "homeassistant/status"
  private static let gateway = "homeassistant/device/ble_gateway_fixture/config"

  private func topic(_ id: String) -> String { "homeassistant/device/ble_\(id)/config" }

  private func document(
    _ fixture: Fixture, _ topic: String, after mark: Int = 0,
    where condition: @escaping @Sendable (Observer.Message) -> Bool = { !$0.payload.isEmpty }
  ) async throws -> Observer.Message {
    try await fixture.observer.message(topic, after: mark, within: Fixture.patience, where: condition)
  }

  /// When the broker received a message, by its own log, in whole seconds. The observer has been there from the start.
  private func received(_ fixture: Fixture, _ message: Observer.Message) async throws -> Int {
    let topic = message.topic.replacing("#link", with: "")
    let number = try [topic, "\(topic)#link"].flatMap { try fixture.observer.messages(on: $0) }
      .count { $0.number <= message.number }
    @Sendable func lines() -> [Substring] {
      fixture.broker.log.split(separator: "\n")
        .filter { $0.contains(": Received PUBLISH from ") && $0.contains("'\(topic)'") }
    }
    try await eventually("message \(number) on \(topic) in the broker's log") { lines().count >= number }
    let time = lines()[number - 1].prefix { $0 != ":" }
    return try #require(Int(time))
  }

  @Test("A gateway at another base topic that announces the same micro:bit is told once")
  func otherBaseTopic() async throws {
    try await withFixture(Plan()) { fixture in
      let topic = topic(try await fixture.id(0))
      let own = try await document(fixture, topic)
      let other = own.text.split(separator: "\"microbit/").joined(separator: "\"elsewhere/")
      for _ in 1...2 { try await fixture.observer.publish(topic, other, retain: true) }
      try await fixture.logged("base_topic=elsewhere")
      try await fixture.synchronizeGateway()
      #expect(try fixture.lines(with: "another base topic").count == 1)
    }
  }

  @Test(
    "The gateway is announced before its micro:bits, all of them at each birth message, and if it was deleted"
  )
  func announcementOrder() async throws {
    // With few readings, the broker's log stays short.
    try await withFixture(Plan(devices: 4, period: 1000)) { fixture in
      var topics = try await fixture.simulator.devices().map { topic($0.id) }
      /// Home Assistant has five seconds to make the gateway's entities; it would make a gateway of a link alone.
      func announced(after mark: Int) async throws {
        let gateway = try await document(fixture, Self.gateway, after: mark)
        for topic in topics {
          let device = try await document(fixture, topic, after: mark)
          let link = try await document(fixture, "\(topic)#link", after: mark)
          #expect(gateway.number < device.number && device.number < link.number)
          let times = [try await received(fixture, gateway), try await received(fixture, link)]
          #expect(times[1] - times[0] >= 4)
          #expect(try link.json()["dev"]?["via_device"]?.string == "ble_gateway_fixture")
        }
        let kept = try await fixture.retained()
        #expect(topics.allSatisfy { kept[$0] != nil && kept["\($0)#link"] == nil })
      }
      try await announced(after: 0)
      for _ in 1...2 {
        let mark = try fixture.observer.mark
        try await fixture.observer.publish(Self.status, "online")
        try await announced(after: mark)
      }

      // Deleted by a user, no device refers to it, until it has been announced again.
      let (id, removed) = (try await fixture.id(3), topics.removeLast())
      try await fixture.perform("device/remove", #"{"id":"\#(id)"}"#)
      try await fixture.observer.publish(Self.gateway, [], retain: true)
      try await fixture.logged("the gateway was deleted in Home Assistant")
      var mark = try fixture.observer.mark
      try await fixture.observer.publish(Self.status, "online")
      let again = try await document(fixture, removed, after: mark)
      // Removed together with the links.
      _ = try await document(fixture, removed, after: again.number) { $0.payload.isEmpty }
      try await fixture.synchronizeGateway()
      for topic in topics {
        #expect(try fixture.observer.messages(on: topic, after: mark).count == 1)
        #expect(try fixture.observer.messages(on: "\(topic)#link", after: mark).isEmpty)
      }
      #expect(try await fixture.stopGateway() == 0)
      mark = try fixture.observer.mark
      try fixture.startGateway()
      try await announced(after: mark)
    }
  }

  /// Home Assistant loses part of a document that arrives while it is still setting up the previous one.
  @Test("A micro:bit is announced once, with its firmware version, also after a restart")
  func microbitIsAnnouncedOnce() async throws {
    try await withFixture(Plan(devices: 5)) { fixture in
      let devices = try await fixture.simulator.devices()
      for start in 1...2 {
        let mark = try fixture.observer.mark
        if start == 2 { try await fixture.restartGateway() }
        for device in devices { try await fixture.online(device.id, after: mark) }
        for device in devices {
          let first = try await document(fixture, topic(device.id), after: mark)
          #expect(try first.json()["dev"]?["sw"]?.string != nil)
          // Anything missing from the first document would be in this one.
          try await fixture.perform(
            "device/options", #"{"id":"\#(device.id)","options":{"name":"Start \#(start)"}}"#)
          let second = try await document(fixture, topic(device.id), after: mark) {
            $0.text.contains("Start \(start)")
          }
          let name = try #require(try first.json()["dev"]?["name"]?.string)
          #expect(first.text.replacing(name, with: "Start \(start)") == second.text)
          #expect(try fixture.observer.messages(on: topic(device.id), after: mark).count == 2)
        }
        try await fixture.stored("serial")
      }
    }
  }

  @Test("Documents of a micro:bit are at least a second apart, and the newest wins")
  func documentsAreASecondApart() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      _ = try await document(fixture, topic(id))
      let (mark, begin) = (try fixture.observer.mark, ContinuousClock.now)
      for number in 1...20 {
        try await fixture.perform("device/options", #"{"id":"\#(id)","options":{"name":"Name \#(number)"}}"#)
      }
      try await fixture.observer.publish(Self.status, "online")
      _ = try await document(fixture, topic(id)) { $0.text.contains("Name 20") }
      let all = try fixture.observer.messages(on: topic(id), after: mark)
      // Measured over all of them: two may be delivered closer together than they were sent.
      let last = try #require(all.last).arrived
      #expect(begin.duration(to: last) >= .seconds(1) * (all.count - 1))
      // A removal does not wait.
      try await fixture.perform("device/remove", #"{"id":"\#(id)"}"#)
      let end = try await document(fixture, topic(id)) { $0.payload.isEmpty }
      let answer = try await fixture.message("bridge/fixture/response/device/remove")
      #expect(end.number < answer.number)
    }
  }

  @Test("A hundred micro:bits are announced within seconds of a birth message")
  func hundredMicrobits() async throws {
    try await withFixture(Plan(devices: 100, period: 1000, simulator: ["--connect-ms", "1"])) { fixture in
      let devices = try await fixture.simulator.devices()
      for device in devices { _ = try await document(fixture, topic(device.id)) }
      // One of five attempts must be fast enough, as the machine may be busy.
      var times: [Duration] = []
      while times.count < 5, !times.contains(where: { $0 < .seconds(15) }) {
        let mark = try fixture.observer.mark
        try await fixture.observer.publish(Self.status, "online")
        let status = try await document(fixture, Self.status, after: mark)
        var last = status
        for device in devices {
          let announced = try await document(fixture, topic(device.id), after: mark)
          if announced.number > last.number { last = announced }
        }
        times.append(status.arrived.duration(to: last.arrived))
      }
      #expect(times.contains { $0 < .seconds(15) }, "\(times)")
    }
  }

  /// If Home Assistant was offline when the topic was cleared, it still has the device in its registry.
  @Test("A device that another one has replaced is announced and removed once more at the next birth message")
  func removal() async throws {
    try await withFixture(Plan(devices: 2, entries: Self.kitchen)) { fixture in
      let topic = topic(try await fixture.id())
      _ = try await document(fixture, topic)
      try await fixture.stored("announced")
      try await fixture.stored("kitchen")
      #expect(try await fixture.stopGateway() == 0)
      try fixture.configure(entries: Self.kitchen.replacing("D0:5A:00:00", with: "D1:5A:00:01"))
      var mark = try fixture.observer.mark
      try fixture.startGateway()
      _ = try await document(fixture, topic, after: mark) { $0.payload.isEmpty }
      _ = try await document(fixture, self.topic(try await fixture.id(1)), after: mark)
      #expect(try await fixture.stopGateway() == 0)
      // The removal is still known after a restart.
      mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.bridgeOnline(after: mark)
      _ = try await document(fixture, Self.gateway, after: mark)

      mark = try fixture.observer.mark
      try await fixture.observer.publish(Self.status, "online")
      let announcement = try await document(fixture, topic, after: mark)
      let components = try announcement.json()["cmps"]
      #expect(components?["temperature"]?["uniq_id"]?.string?.hasSuffix("_temperature") == true)
      #expect(components?["period"]?["p"]?.string == "number")
      let end = try await document(fixture, topic, after: mark) { $0.payload.isEmpty }
      #expect(end.number > announcement.number)
      #expect(try await fixture.retained()[topic] == nil)

      mark = try fixture.observer.mark
      try await fixture.observer.publish(Self.status, "online")
      _ = try await document(fixture, self.topic(try await fixture.id(1)), after: mark)
      try await fixture.synchronizeGateway()
      #expect(try fixture.observer.messages(on: topic, after: mark).isEmpty)
    }
  }

  @Test(
    "A removal interrupted by the end of Home Assistant or of the broker is repeated at the next birth message"
  )
  func removalInterrupted() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let id = try await fixture.id()
      let topic = topic(id)
      _ = try await document(fixture, topic)
      try await fixture.observer.publish(
        "microbit/bridge/fixture/request/device/remove", #"{"id":"\#(id)"}"#)
      let cleared = try await document(fixture, topic) { $0.payload.isEmpty }
      // Another gateway that hears the device announces it as soon as its `info` is cleared.
      #expect(try await fixture.message("\(id)/info") { $0.payload.isEmpty }.number > cleared.number)
      var mark = try fixture.observer.mark
      try await fixture.observer.publish(Self.status, "online")
      _ = try await document(fixture, topic, after: mark)
      try await fixture.observer.publish(Self.status, "offline")
      try await fixture.synchronizeGateway()
      // The removal would follow the announcement after five seconds.
      try #require(try !fixture.observer.messages(on: topic, after: mark).contains(where: \.payload.isEmpty))
      mark = try fixture.observer.mark
      try await fixture.observer.publish(Self.status, "online")
      _ = try await document(fixture, topic, after: mark)
      // The broker ends alone: no birth message follows.
      mark = try fixture.observer.mark
      try await fixture.killBroker()
      try #require(try fixture.observer.messages(on: topic, after: mark).isEmpty)
      try await fixture.restartBroker()
      _ = try await document(fixture, topic, after: mark) { $0.payload.isEmpty }
      mark = try fixture.observer.mark
      try await fixture.observer.publish(Self.status, "online")
      _ = try await document(fixture, topic, after: mark)
      _ = try await document(fixture, topic, after: mark) { $0.payload.isEmpty }
    }
  }

  @Test("A device that is removed and added again with fewer properties leaves no entities")
  func removedAndAdded() async throws {
    try await withFixture { fixture in
      let (id, address) = (try await fixture.id(), try await fixture.simulator.device(0).address)
      _ = try await document(fixture, topic(id))
      try await fixture.perform("device/remove", #"{"id":"\#(id)"}"#)
      _ = try await document(fixture, topic(id)) { $0.payload.isEmpty }
      let mark = try fixture.observer.mark
      try await fixture.perform(
        "device/add", #"{"identifier":"\#(address)","exclude":["period"]}"#)
      let again = try await document(fixture, topic(id), after: mark)
      #expect(try again.json()["cmps"]?["period"] == .object(["p": .string("number")]))
    }
  }

  @Test("A device that another gateway has announced since is not removed")
  func removalOfDeviceOfAnotherGateway() async throws {
    try await withFixture(Plan(devices: 2)) { fixture in
      let id = try await fixture.id()
      let topic = topic(id)
      let own = try await document(fixture, topic)
      try await fixture.observer.publish(
        "microbit/bridge/fixture/request/device/remove", #"{"id":"\#(id)"}"#)
      _ = try await document(fixture, topic) { $0.payload.isEmpty }
      var mark = try fixture.observer.mark
      let other = own.text.replacing("bridge/fixture/", with: "bridge/attic/")
      try await fixture.observer.publish(topic, other, retain: true)
      try await fixture.observer.publish(Self.status, "online")
      let last = topic
      _ = try await document(fixture, self.topic(try await fixture.id(1)), after: mark)
      try await fixture.synchronizeGateway()
      #expect(try fixture.observer.messages(on: last, after: mark).map(\.text) == [other])
      mark = try fixture.observer.mark
      try await fixture.observer.publish(Self.status, "online")
      _ = try await document(fixture, self.topic(try await fixture.id(1)), after: mark)
      try await fixture.synchronizeGateway()
      #expect(try fixture.observer.messages(on: last, after: mark).isEmpty)
    }
  }

  /// mosquitto saves every 30 minutes, without further settings.
  @Test(
    "What was renamed or removed is cleared again when the broker was killed and has gone back",
    arguments: [false, true])
  func brokerGoesBack(gatewayIsRestarted: Bool) async throws {
    var plan = Plan(devices: 2)
    plan.access = {
      "allow_anonymous true\npersistence true\npersistence_location \($0)/\nautosave_interval 0"
    }
    try await withFixture(plan) { fixture in
      let (renamed, removed) = (try await fixture.id(), try await fixture.id(1))
      for id in [renamed, removed] {
        try await fixture.online(id)
        _ = try await document(fixture, topic(id))
      }
      try await fixture.synchronizeGateway()
      fixture.broker.save()
      _ = try await fixture.broker.logLine { $0.contains("Saving in-memory database") }
      try await fixture.perform("device/rename", #"{"id":"\#(renamed)","to":"hall"}"#)
      var mark = try fixture.observer.mark
      try await fixture.perform("device/remove", #"{"id":"\#(removed)"}"#)
      _ = try await document(fixture, topic(removed), after: mark) { $0.payload.isEmpty }
      if gatewayIsRestarted {
        // Home Assistant removes it: nothing but the record of the removed device is left.
        mark = try fixture.observer.mark
        try await fixture.observer.publish(Self.status, "online")
        _ = try await document(fixture, topic(removed), after: mark) { $0.payload.isEmpty }
        #expect(try await fixture.stopGateway() == 0)
      }
      try await fixture.broker.kill()
      mark = try fixture.observer.mark
      if gatewayIsRestarted {
        try await fixture.broker.start()
        try await fixture.observer.synchronize()
        #expect(try await fixture.retained()["\(removed)/info"] != nil)
        try fixture.startGateway()
      } else {
        try await fixture.restartBroker()
      }
      try await fixture.online("hall", after: mark)
      try await eventually("nothing of the older state") {
        let kept = try await fixture.retained()
        return !kept.keys.contains { $0.hasPrefix("\(renamed)/") || $0.hasPrefix("\(removed)/") }
          && kept[topic(removed)] == nil && kept["hall/info"] != nil && kept[topic(renamed)] != nil
      }
    }
  }

  private static let kitchen = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen"}"#

  /// Reloads the configuration by SIGHUP, as the broker does not answer.
  private func reload(_ fixture: Fixture, _ entries: String) async throws {
    try fixture.configure(entries: entries)
    try fixture.gateway.signal(SIGHUP)
    _ = try await fixture.gateway.line { $0.contains("configuration reloaded") }
  }

  @Test("A micro:bit that is removed while its document is queued for the broker is not announced again")
  func removedDuringOutage() async throws {
    try await withFixture(Plan(entries: Self.kitchen)) { fixture in
      let topic = topic("d05a0000c0de")
      _ = try await document(fixture, topic)
      try await fixture.synchronizeGateway()
      // The next document of a micro:bit is sent after a second.
      try await Task.sleep(for: .seconds(1))
      fixture.broker.freeze(true)
      try await reload(fixture, Self.kitchen.replacing("kitchen", with: "hall"))
      try await fixture.broker.kill()
      try await reload(fixture, #"{"match":{"identifier":"D1:5A:00:01:C0:DE"}}"#)
      let mark = try fixture.observer.mark
      try await fixture.restartBroker()
      try await fixture.bridgeOnline(after: mark)
      _ = try await document(fixture, Self.gateway, after: mark)
      try await fixture.synchronizeGateway()
      #expect(try await fixture.retained()[topic] == nil)
    }
  }

  @Test(
    "A micro:bit that is removed and added again during an outage is announced", arguments: ["5", "3.1.1"])
  func addedAgainDuringOutage(version: String) async throws {
    try await withFixture(Plan(entries: Self.kitchen, mqtt: #""protocol":"\#(version)""#)) { fixture in
      let topic = topic("d05a0000c0de")
      _ = try await document(fixture, topic)
      try await fixture.broker.kill()
      try await reload(fixture, #"{"match":{"identifier":"D1:5A:00:01:C0:DE"}}"#)
      try await reload(fixture, Self.kitchen)
      // Longer than the pause that follows a deletion.
      try await Task.sleep(for: .seconds(1))
      let mark = try fixture.observer.mark
      try await fixture.restartBroker()
      _ = try await document(fixture, topic, after: mark)
      try await fixture.synchronizeGateway()
      #expect(try fixture.lines(with: "deleted in Home Assistant").isEmpty)
      #expect(try await fixture.retained()[topic] != nil)
    }
  }
}
