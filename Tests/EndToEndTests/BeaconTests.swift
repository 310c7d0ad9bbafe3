import Log
import TestSupport
import Testing

/// Devices that are only heard.
@Suite struct BeaconTests {
  private static let beacon = "e67a00000000"
  private static let climate = "e67a00000001"
  private static let locked = "e67a00000002"

  /// A frame Eddystone-UID of MakeCode, of group 42.
  private static func uid(_ number: Int) -> String {
    "00ec" + "0000000000000000002a" + "00000000000\(number)"
  }

  private static func data(_ service: String, _ hex: String) -> String {
    #""service":"\#(service)","hex":"\#(hex)""#
  }

  /// The shipped profile of beacons, as a member of a configuration's `profiles`.
  static func profiles(offlineAfter: String = "") throws -> String {
    try ["eddystone"].map { name in
      let text = String(decoding: try shipped("deploy/profiles/\(name).json"), as: UTF8.self)
      guard let first = text.firstIndex(of: "{"), let last = text.lastIndex(of: "}") else {
        throw Failure("no profile in \(name).json")
      }
      let profile = text[text.index(after: first)..<last]
      return profile.replacing(#""properties""#, with: offlineAfter + #""properties""#, maxReplacements: 1)
    }.joined(separator: ",")
  }

  /// Peripheral 0 is a micro:bit with Eddystone, 1 a sensor with BTHome, 2 one that encrypts.
  private static func plan(offlineAfter: String = "") throws -> Plan {
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.profiles = try profiles(offlineAfter: offlineAfter)
    plan.entries = """
      {"match":{"service":"feaa"},"profile":"eddystone"},
      {"match":{"service":"fcd2"},"profile":"bthome"}
      """
    func file(_ number: Int, _ service: String, _ hex: String) -> String {
      #"{"address":"E6:7A:00:00:00:0\#(number)","service_data":{"\#(service)":"\#(hex)"}}"#
    }
    plan.files = [
      "0.json": file(0, "feaa", "00ec" + "0000000000000000002a" + "000000000015"),
      "1.json": file(1, "fcd2", "40" + "0001" + "02ca09" + "0161"),
      "2.json": file(2, "fcd2", "41" + "a47266c95f730011223378237214"),
    ]
    return plan
  }

  private static func startSimulator(_ fixture: Fixture) async throws {
    try await fixture.startSimulator(
      (0...2).flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
  }

  private static func advertise(_ fixture: Fixture, _ index: Int, _ service: String, _ hex: String)
    async throws
  {
    try await fixture.simulator.control("advertise", index, data(service, hex))
  }

  @Test("inspect shows what a device sends that is only heard, and each value, without a connection")
  func inspection() async throws {
    try await withFixture(try Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.climate)
      let found = try await fixture.perform("device/inspect", #"{"id":"\#(Self.climate)"}"#)
      #expect(found["profile"]?.string == "bthome" && found["fits"] == .bool(true), "\(found)")
      #expect(found["missing"] == nil && found["missing_services"] == nil, "\(found)")
      let (status, text) = try await fixture.command(["inspect", Self.climate])
      #expect(status == 0 && text.contains("profile bthome: fits"), "\(text)")
      #expect(text.contains(#/\n  service data fcd2 +40000102ca090161\n/#), "\(text)")
      #expect(text.contains(#/\n  temperature +25.06 °C\n/#), "\(text)")
      let beacon = try await fixture.command(["inspect", Self.beacon]).text
      #expect(beacon.contains(#/\n  url +\(service data feaa begins with 00, url wants 10\)\n/#), "\(beacon)")
      for device in try await fixture.simulator.devices() { #expect(!device.isConnected) }
    }
  }

  /// The frame and the key are those of BTHome's documentation.
  @Test("inspect without a gateway uses the profile and the key of the entry")
  func inspectionWithoutAGateway() async throws {
    let (address, name) = ("54:48:E6:8F:80:A5", "garden")
    var plan = Plan(devices: 0)
    plan.absent = [.simulator, .gateway, .observer]
    plan.entries =
      #"{"match":{"identifier":"\#(address)"},"id":"\#(name)","profile":"bthome","key":"231d39c1d7cc1ab1aee224cd096db932"}"#
    plan.files = [
      "0.json": #"{"address":"\#(address)","service_data":{"fcd2":"41a47266c95f730011223378237214"}}"#
    ]
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(["--peripheral", "\(fixture.folder.path)/0.json"])
      let config = fixture.folder.path + "/config.json"
      let (status, text) = try await fixture.command(["inspect", name, "--config", config])
      #expect(status == 0 && text.contains("profile bthome: fits"), "\(text)")
      #expect(text.contains(#/\n  temperature +25.06 °C\n/#), "\(text)")
    }
  }

  @Test("What a beacon advertises is published and announced, each change of it, and nothing connects")
  func values() async throws {
    try await withFixture(try Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.beacon)
      try await fixture.message(
        "\(Self.beacon)/uid", #"{"power":-20,"namespace":"0000000000000000002a","instance":21}"#)
      try await fixture.message("\(Self.climate)/temperature", "25.06")
      try await fixture.message("\(Self.climate)/battery", "97")
      let config = try await fixture.observer.message(
        "homeassistant/device/ble_\(Self.climate)/config", within: Fixture.patience
      ) { $0.text.contains(#""temperature""#) }
      // What it does not advertise is not announced.
      #expect(config.text.contains(#""battery""#) && !config.text.contains(#""humidity""#))
      #expect(!config.text.contains("reconnect"))

      let mark = try fixture.observer.mark
      try await Self.advertise(fixture, 1, "fcd2", "40" + "0002" + "02cb09" + "03bf13" + "3a01")
      _ = try await fixture.observer.message(
        "microbit/\(Self.climate)/temperature", after: mark, within: Fixture.patience
      ) { $0.text == "25.07" }
      try await fixture.message("\(Self.climate)/humidity", "50.55")
      let press = try await fixture.observer.message(
        "microbit/\(Self.climate)/button", after: mark, within: Fixture.patience
      ) { $0.text.contains("press") }
      #expect(!press.retain)
      _ = try await fixture.observer.message(
        "homeassistant/device/ble_\(Self.climate)/config", after: mark, within: Fixture.patience
      ) { $0.text.contains(#""humidity""#) }
      let url = "10e7" + "03" + "6d6963726f6269742e6f7267"
      try await Self.advertise(fixture, 0, "feaa", url)
      try await fixture.message("\(Self.beacon)/url", "https://microbit.org")

      // A value that the sensor does not know is a reading, and nothing on the topic.
      let unknown = try fixture.observer.mark
      try await Self.advertise(fixture, 1, "fcd2", "40" + "0003" + "020080" + "0162")
      try await fixture.message("\(Self.climate)/readings", after: unknown) {
        $0.text.hasPrefix(#"{"property":"temperature","value":null,"unit":"°C""#)
      }
      try await fixture.message("\(Self.climate)/battery", "98", after: unknown)
      #expect(
        try fixture.observer.messages(on: "microbit/\(Self.climate)/temperature", after: unknown).isEmpty)

      let listed = try #require(try await fixture.listed(Self.beacon))
      #expect(listed["session"]?.string == "listening")
      let encrypted = try #require(try await fixture.listed(Self.locked))
      #expect(encrypted["last_error"]?.string?.contains("encrypted") == true)
      for device in try await fixture.simulator.devices() { #expect(!device.isConnected) }
    }
  }

  @Test(
    "Each frame that sensors and remotes send in BTHome has its values, without a line of configuration but a key"
  )
  func field() async throws {
    let text = String(decoding: try shipped("Tests/Field/beacons.tsv"), as: UTF8.self)
    let frames = try text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      let columns = line.split(separator: "\t").map(String.init)
      return (hex: columns[0], values: try JSON.parse(columns[1]))
    }
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.entries = """
      {"match":{"identifier":"54:48:E6:8F:80:A5"},"profile":"bthome","key":"231d39c1d7cc1ab1aee224cd096db932"},
      {"match":{"service":"fcd2"},"profile":"bthome"}
      """
    @Sendable func address(_ index: Int) -> String {
      if frames[index].hex.hasPrefix("41") { return "54:48:E6:8F:80:A5" }
      return "E6:7B:00:00:00:" + (index < 16 ? "0" : "") + String(index, radix: 16, uppercase: true)
    }
    @Sendable func id(_ index: Int) -> String { address(index).replacing(":", with: "").lowercased() }
    // A remote is silent at first: what has happened before it was heard is not told.
    @Sendable func isEvent(_ index: Int) -> Bool {
      frames[index].hex.contains("3a") || frames[index].hex.contains("3c")
    }
    for (index, frame) in frames.enumerated() {
      let first = isEvent(index) ? "4000630164" : frame.hex
      plan.files["\(index).json"] = #"{"address":"\#(address(index))","service_data":{"fcd2":"\#(first)"}}"#
    }
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(
        frames.indices.flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
      for index in frames.indices where isEvent(index) {
        try await fixture.online(id(index))
        try await Self.advertise(fixture, index, "fcd2", frames[index].hex)
      }
      for (index, frame) in frames.enumerated() {
        for name in frame.values.keys {
          let value = try #require(frame.values[name])
          try await fixture.message("\(id(index))/\(name)") { message in
            if let event = value["event"]?.string {
              return message.text.hasPrefix(#"{"event_type":"\#(event)""#) && !message.retain
            }
            let wanted = value.text
            return message.text == wanted || Double(message.text) == Double(wanted) && Double(wanted) != nil
          }
        }
      }
      // A dimmer, further down than what was listed above.
      let dimmer = try #require(frames.firstIndex { $0.hex == "40000101643c0103" })
      try await fixture.message("\(id(dimmer))/dimmer") {
        $0.text.hasPrefix(#"{"event_type":"rotate_left","steps":3,"time":"#)
      }
      let remote = try #require(frames.firstIndex { $0.hex.hasPrefix("44001d") })
      let config = try await fixture.observer.message(
        "homeassistant/device/ble_\(id(remote))/config", within: Fixture.patience
      ) { $0.text.contains(#""Button 2""#) }
      #expect(config.text.contains(#""hold_release""#))
    }
  }

  @Test("A beacon that is not heard for the configured time is offline, until it is heard again")
  func age() async throws {
    try await withFixture(try Self.plan(offlineAfter: #""offline_after":3,"#)) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.beacon)
      var mark = try fixture.observer.mark
      try await fixture.simulator.control("vanish", 0)
      _ = try await fixture.observer.message(
        "microbit/\(Self.beacon)/availability", after: mark, within: Fixture.patience
      ) { $0.text == "offline" }
      mark = try fixture.observer.mark
      try await fixture.simulator.control("return", 0)
      try await Self.advertise(fixture, 0, "feaa", "00ec" + "0000000000000000002a" + "000000000015")
      _ = try await fixture.observer.message(
        "microbit/\(Self.beacon)/availability", after: mark, within: Fixture.patience
      ) { $0.text == "online" }
      _ = try await fixture.observer.message(
        "microbit/\(Self.beacon)/uid", after: mark, within: Fixture.patience
      ) { $0.text.contains("21") }
    }
  }

  @Test(
    "A device that sends only when something happens stays online, also over a restart, with the time of its last message"
  )
  func triggerOnly() async throws {
    let press = "44" + "0001" + "3a01"
    try await withFixture(try Self.plan(offlineAfter: #""offline_after":3,"#)) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.climate)
      try await Self.advertise(fixture, 1, "fcd2", press)
      let heard = try await fixture.message("\(Self.climate)/info") { $0.text.contains(#""last_heard""#) }
      let time = try heard.json()["last_heard"]?.string
      #expect(time?.hasSuffix("Z") == true)
      let mark = try fixture.observer.mark
      for index in 0...1 { try await fixture.simulator.control("vanish", index) }
      try await fixture.offline(Self.beacon, after: mark)
      try await fixture.restartGateway()
      try await fixture.online(Self.climate, after: mark)
      let restarted = try await fixture.retained(of: Self.climate)["\(Self.climate)/info"]?.json()
      #expect(restarted?["last_heard"]?.string == time)
      // A time in the entry comes first.
      try await fixture.reload(
        entries: fixture.plan.entries.replacing(#""bthome"}"#, with: #""bthome","offline_after":3}"#))
      try await fixture.simulator.control("return", 1)
      try await Self.advertise(fixture, 1, "fcd2", "44" + "0002" + "3a01")
      try await fixture.message("\(Self.climate)/info", after: mark) { !$0.text.contains(#""last_heard""#) }
      let end = try fixture.observer.mark
      try await fixture.simulator.control("vanish", 1)
      try await fixture.offline(Self.climate, after: end)
    }
  }

  @Test(
    "A device that sends only when something happens is taken over from a gateway that has not heard it for a minute, 3 s later"
  )
  func triggerOnlyElsewhere() async throws {
    var plan = try Self.plan()
    let trigger = "44" + "0001" + "02ca09"
    for index in 1...2 {
      plan.files["\(index).json"] =
        #"{"address":"E6:7A:00:00:00:0\#(index)","service_data":{"fcd2":"\#(trigger)"}}"#
    }
    let (notHeardThere, heardThere) = (Self.climate, Self.locked)
    try await withFixture(plan) { fixture in
      let observer = try fixture.observer
      try await Self.startSimulator(fixture)
      try await observer.publish("microbit/bridge/cellar/state", "online", retain: true)
      // In the cellar it is heard better, and was heard a minute earlier than here, or half a minute later.
      for (id, seconds) in [(notHeardThere, -60), (heardThere, 30)] {
        let info = try await fixture.message("\(id)/info") { $0.text.contains(#""last_heard""#) }.json()
        let heard = try #require(info["last_heard"]?.string.flatMap { Timestamp($0) })
        let there =
          #"{"owner":"cellar","profile":"bthome","heard":true,"rssi":-10,"last_connected":"2026-01-01T00:00:00.000Z","#
          + #""last_heard":"\#(heard + .seconds(seconds))"}"#
        try await observer.publish("microbit/\(id)/info", there, retain: true)
        let listed = try await fixture.listed(id)
        #expect(listed?["owner"]?.string == "cellar")
      }
      // An `info` that arrives now tells of now, whatever the clock there; of one that is retained the time counts.
      try await fixture.restartGateway()
      let mark = observer.mark
      for index in [2, 1] {
        try await Self.advertise(fixture, index, "fcd2", "44" + "0002" + "02cb09" + "3a01")
      }
      let info = try await fixture.waitForOwnership(of: notHeardThere, from: "cellar", after: mark)
      let heard = try #require(info["last_heard"]?.string.flatMap { Timestamp($0) })
      let moved = try #require(info["moved"]?["time"]?.string.flatMap { Timestamp($0) })
      #expect(moved >= heard + .seconds(3))
      // The values of the frame that it was taken over with.
      try await fixture.message("\(notHeardThere)/temperature", "25.07", after: mark)
      let other = try await fixture.listed(heardThere)
      #expect(other?["owner"]?.string == "cellar")
      #expect(observer.messages(on: "microbit/\(heardThere)/temperature", after: mark).isEmpty)
      // The presses are told in any case.
      for id in [heardThere, notHeardThere] {
        #expect(observer.messages(on: "microbit/\(id)/button", after: mark).count == 1)
      }
    }
  }

  @Test("A request that needs a link is refused")
  func requests() async throws {
    try await withFixture(try Self.plan()) { fixture in
      try await Self.startSimulator(fixture)
      try await fixture.online(Self.beacon)
      for request in ["reconnect", "pair", "identify"] {
        let reason = try await fixture.refusal("device/\(request)", #"{"id":"\#(Self.beacon)"}"#)
        #expect(reason.contains("only heard"), "\(reason)")
      }
    }
  }

  @Test(
    "Of two gateways that hear a beacon the one that hears it better publishes it, until that one is killed")
  func ownership() async throws {
    let profiles = try Self.plan().profiles
    let plans = ["ground", "attic"].map { id in
      var plan = Plan.fixture(id, area: id)
      plan.profiles = profiles
      plan.entries = #"{"match":{"identifier":"\#(Cluster.address)"},"profile":"eddystone","name":"Beacon"}"#
      return plan
    }
    try await withCluster(plans) { cluster in
      let (ground, attic) = (cluster[0], cluster[1])
      try await ground.simulator.control("strength", 0, #""v":-50"#)
      try await Self.advertise(ground, 0, "feaa", Self.uid(1))
      try await ground.waitForOwnership(of: Cluster.id)
      try await attic.simulator.control("return", 0)
      try await attic.simulator.control("strength", 0, #""v":-80"#)
      try await Self.advertise(attic, 0, "feaa", Self.uid(1))
      // Whichever published first.
      try await attic.message("bridge/attic/devices") { message in
        let device = try? message.json().array?.first
        return device?["last_connected"] != nil && device?["owner"]?.string == "ground"
      }
      let info = try await ground.retained(of: Cluster.id)["\(Cluster.id)/info"]?.json()
      #expect(info?["owner"]?.string == "ground")
      // It is carried upstairs, and goes on sending; the mean of some signals counts.
      let carried = try ground.observer.mark
      try await attic.simulator.control("strength", 0, #""v":-30"#)
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          while true {
            for number in 2...3 { try await Self.advertise(attic, 0, "feaa", Self.uid(number)) }
            try await Task.sleep(for: .milliseconds(100))
          }
        }
        group.addTask {
          try await attic.waitForOwnership(of: Cluster.id, from: "ground", after: carried)
          try await ground.message("\(Cluster.id)/uid", after: carried) { $0.text.contains(#""instance":3"#) }
        }
        try await group.next()
        group.cancelAll()
      }

      let mark = try ground.observer.mark
      try await attic.killGateway()
      try await ground.waitForOwnership(of: Cluster.id, from: "attic", after: mark)
      try await Self.advertise(ground, 0, "feaa", Self.uid(4))
      try await ground.message("\(Cluster.id)/uid", after: mark) { $0.text.contains(#""instance":4"#) }
    }
  }
}
