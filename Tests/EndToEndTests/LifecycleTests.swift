import Glibc
import TestSupport
import Testing

/// Start, stop and crash of the gateway.
@Suite struct LifecycleTests {
  private static let state = "bridge/\(Fixture.gatewayID)/state"

  /// libmosquitto 2.0.11 aborts (`log__printf: Assertion 'mosq' failed`); no check by the gateway can come before all
  /// that it reads, as with TLS only the library sees it.
  @Test(
    "A message with an unknown property is refused; where libmosquitto ends the process, the next start says so"
  )
  func unknownProperty() async throws {
    try await withFixture(Plan(absent: [.bus, .simulator, .broker, .observer, .gateway])) { fixture in
      // CONNACK, and a PUBLISH with the property 126.
      let bytes: [UInt8] = [0x20, 3, 0, 0, 0, 0x30, 7, 0, 1, 0x61, 2, 126, 0, 0x78]
      let gateway = try fixture.startGateway()
      // The time of its start.
      try await fixture.stored("Z")
      do {
        let server = try StubServer(port: fixture.broker.port, sending: bytes)
        defer { withExtendedLifetime(server) {} }
        // That of Debian 12 aborts, that of Debian 13 does not.
        let isRefused = try? await gateway.line(within: Fixture.patience) { $0.contains("not valid MQTT") }
        guard isRefused == nil else { return }
        try #require(try await gateway.exitStatus(within: Fixture.patience) == 128 + SIGABRT)
      }
      try fixture.startGateway()
      try await fixture.logged("the last run did not end normally")
    }
  }

  @Test("SIGTERM and SIGINT: links ended, status 0 within 5 s", arguments: [SIGTERM, SIGINT])
  func stop(signal: Int32) async throws {
    var plan = Plan(devices: 3)
    plan.simulator = ["--disconnect-ms", "1500"]
    try await withThreeAttempts(plan) { fixture in
      let ids = try await fixture.simulator.devices().map(\.id)
      for id in ids { try await fixture.online(id) }
      let mark = try fixture.observer.mark
      let took = try await fixture.timeToStop(by: signal)
      let areLinksEnded = try await fixture.simulator.devices().allSatisfy { !$0.isConnected }
      try #require(try fixture.lines(with: "stopped").count == 1)
      let kept = try await fixture.retained()
      try await fixture.observer.synchronize()
      // Published once, by the gateway and not by the will.
      let states = try fixture.observer.messages(on: "microbit/" + Self.state, after: mark).map(\.text)
      try #require(areLinksEnded && states == ["offline"] && kept[Self.state]?.text == "offline", "\(states)")
      for id in ids { try #require(kept["\(id)/availability"]?.text == "offline") }
      return took < .seconds(5)
    }
  }

  @Test("No reading that bluetoothd signals is lost by a stop, and none follows offline")
  func stopLosesNoReadings() async throws {
    // As many as a busy machine can unsubscribe from within the half second there is.
    var plan = Plan(devices: 4)
    // As long as a real bluetoothd takes; meanwhile it goes on notifying.
    plan.simulator = ["--disconnect-ms", "2300"]
    plan.entries = #"{"match":{"name_prefix":"BBC micro:bit"},"properties":["temperature"]}"#
    try await withThreeAttempts(plan) { fixture in
      let ids = try await fixture.simulator.devices().map(\.id)
      for id in ids { try await fixture.reading(id) { $0.sequence >= 3 } }
      let took = try await fixture.timeToStop()
      let devices = try await fixture.simulator.devices()
      try await fixture.observer.synchronize()
      for device in devices {
        let readings = try fixture.readings(device.id)
        // One more than was notified: the first value is read.
        try #require(readings.count == device.sent + 1, "\(device)")
        let offline = try await fixture.offline(device.id)
        try #require(readings.allSatisfy { $0.message.number < offline.number })
      }
      return took < .seconds(5)
    }
  }

  @Test(
    "SIGTERM ends the gateway within 5 s while the broker or bluetoothd hangs",
    arguments: [[true, false], [false, true], [true, true]])
  func stopWhileOthersHang(hanging: [Bool]) async throws {
    try await withThreeAttempts { fixture in
      try await fixture.online(try await fixture.id())
      let bluetoothd = try fixture.simulator.process
      if hanging[0] { fixture.broker.freeze(true) }
      if hanging[1] { bluetoothd.signal(SIGSTOP) }
      return try await fixture.timeToStop() < .seconds(5)
    }
  }

  @Test("Stopped between two connections, the gateway corrects what the broker retains")
  func stopBetweenConnections() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      // By its run, the gateway knows that it was online itself.
      try await fixture.message("bridge/\(Fixture.gatewayID)/info")
      let before = try await fixture.retained()
      let topics = [Self.state, "\(id)/availability"]
      for topic in topics { try #require(before[topic]?.text == "online") }
      try await fixture.killBroker()
      try await fixture.logged("trying again")
      try await fixture.freezingGateway {
        try await fixture.broker.start()
        try await fixture.observer.synchronize()
        // As if the broker kept its messages on a disk.
        for (topic, message) in before {
          try await fixture.observer.publish("microbit/" + topic, message.payload, retain: true)
        }
        try await fixture.observer.synchronize()
        try fixture.gateway.signal(SIGTERM)
      }
      try #require(try await fixture.gateway.exitStatus(within: Fixture.patience) == 0)
      let kept = try await fixture.retained()
      for topic in topics { try #require(kept[topic]?.text == "offline", "\(topic)") }
    }
  }

  @Test("Killed: the will is published; started again, it uses the link there is, and corrects what it left")
  func killedAndBack() async throws {
    try await withFixture { fixture in
      let id = try await fixture.id()
      try await fixture.online(id)
      let first = try await fixture.reading(id) { $0.sequence >= 3 }
      let monitor = try await BusMonitor(fixture.bus)
      var mark = try fixture.observer.mark
      try await fixture.killGateway()
      try await fixture.message(Self.state, "offline", after: mark)
      try #require(try await fixture.simulator.device(0).isConnected)
      mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.bridgeOnline(after: mark)
      try await fixture.online(id, after: mark)
      let reading = try await fixture.reading(id, after: mark) { $0.sequence == 2 }
      try #require(reading.run != first.run)
      try #require(try await monitor.calls(of: "Connect") == 0)
      try #require(try await monitor.calls(of: "StartNotify") == 1)
      try #require(try await fixture.simulator.device(0).isNotifying)

      // Availability that a killed gateway leaves is corrected at the next start, by this record.
      try await fixture.stored(#""name":"BBC micro:bit"#)
      try await fixture.killGateway()
      try await fixture.simulator.control("vanish", 0)
      try await fixture.simulator.waitUntil(0, "its link is lost") { !$0.isConnected }
      let kept = try await fixture.retained()
      try #require(kept["\(id)/availability"]?.text == "online")
      mark = try fixture.observer.mark
      try fixture.startGateway()
      try await fixture.logged("the last run did not end normally")
      try await fixture.offline(id, after: mark)
      // The device is still known: a command for it is pending.
      try await fixture.bridgeOnline(after: mark)
      try #require(try await fixture.setPeriod(id, "60")["status"]?.string == "pending")
      mark = try fixture.observer.mark
      try await fixture.simulator.control("return", 0)
      try await fixture.online(id, after: mark)
      try await fixture.message("\(id)/period", "60", after: mark)
    }
  }

  @Test("On a disk that is read-only nothing is said of the end of the last run, which could not note it")
  func endOnAReadOnlyDisk() async throws {
    try await withFixture(Plan(absent: [.bus, .simulator, .observer])) { fixture in
      let text = "the last run did not end normally"
      // The time of its start.
      try await fixture.stored("Z")
      try fixture.gateway.signal(SIGKILL)
      try await fixture.gateway.exitStatus(within: Fixture.patience)
      // Root may write any file.
      let lock = fixture.folder.path + "/state/\(Fixture.gatewayID).db.lock"
      try #require(unlink(lock) == 0 && mkdir(lock, 0o700) == 0)
      for _ in 1...2 {
        try fixture.startGateway()
        try await fixture.logged("cannot write the state folder")
        try await fixture.logged("started")
        try #require(try await fixture.stopGateway() == 0)
        try #require(try fixture.lines(with: text).isEmpty)
      }
      try #require(rmdir(lock) == 0)
      try fixture.startGateway()
      try await fixture.logged(text)
    }
  }

  @Test("The service manager is notified of readiness, life and stop")
  func notify() async throws {
    try await withFixture(Plan(absent: [.gateway])) { fixture in
      let socket = try NotifySocket(in: fixture.folder)
      // Without WATCHDOG_USEC it does not say that it is alive.
      try fixture.startGateway(environment: ["NOTIFY_SOCKET": socket.path])
      try await socket.received("READY=1")
      _ = try await fixture.stopGateway()
      try await socket.received("STOPPING=1")
      try #require(!socket.lines.elements.contains("WATCHDOG=1"))
      let before = socket.lines.count

      let gateway = try fixture.startGateway(environment: [
        "NOTIFY_SOCKET": socket.path, "WATCHDOG_USEC": "200000",
      ])
      try await socket.received("READY=1", from: before)
      for count in 1...3 {
        let marks = socket.lines.elements.indices.filter { socket.lines.elements[$0] == "WATCHDOG=1" }
        try await socket.received("WATCHDOG=1", from: marks.count < count ? 0 : marks[count - 1] + 1)
      }
      _ = try await socket.lines.first(from: before, within: Fixture.patience, "a status") {
        $0.hasPrefix("STATUS=1 of 1 devices online")
      }
      try #require(!socket.lines.elements.dropFirst(before).contains("STOPPING=1"))
      gateway.signal(SIGTERM)
      try await socket.received("STOPPING=1", from: before)
      try #require(try await gateway.exitStatus(within: Fixture.patience) == 0)
      try #require(socket.lines.elements.dropFirst(before).count { $0 == "READY=1" } == 1)
    }
  }

  @Test("Memory does not grow with the number of readings")
  func memory() async throws {
    var plan = Plan(devices: 10, period: 5)
    // No observer before the end, so that only the gateway is under load.
    plan.absent = [.observer]
    try await withFixture(plan) { fixture in
      var sizes: [Int] = []
      for count in [200, 600, 1000, 1400] {
        for index in 0..<10 { try await fixture.simulator.waitUntil(index, hasSent: count) }
        sizes.append(try fixture.anonymousKilobytes)
      }
      // 4000 readings between two samples, and their 8000 messages: leaked, they would take more than a MiB each time.
      // A broker that is slow for a moment makes the memory grow once.
      let growths = zip(sizes.dropFirst(), sizes).map { $0 - $1 }
      try #require(growths.contains { $0 < 1024 }, "\(sizes) KiB")
      try await fixture.startObserver()
      for index in 0..<10 {
        try await fixture.reading(try await fixture.id(index)) { $0.sequence > 500 }
      }
    }
  }
}

extension Fixture {
  /// Ends the gateway by a signal; returns the time that took.
  fileprivate func timeToStop(by signal: Int32 = SIGTERM) async throws -> Duration {
    let gateway = try gateway
    let start = ContinuousClock.now
    gateway.signal(signal)
    try #require(try await gateway.exitStatus(within: Self.patience) == 0)
    return start.duration(to: .now)
  }
}
