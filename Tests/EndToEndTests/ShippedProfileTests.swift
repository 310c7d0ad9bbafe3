import TestSupport
import Testing

/// The profiles in deploy/profiles, loaded by `profiles_directory`, each with a peripheral simulated from it.
@Suite struct ShippedProfileTests {
  private static let names = [
    "battery", "counter", "current_time", "cycling_speed_and_cadence", "environmental_sensing",
    "health_thermometer", "heart_rate", "mi_flora", "nordic_uart", "scratch_microbit", "sensortag_keys",
    "sound_player", "xiaomi_lywsd03mmc",
  ]

  /// A notified value of a characteristic, and the payload expected on the property's topic.
  private struct Received {
    let profile: String
    let property: String
    let characteristic: String
    let hex: String
    let payload: String
  }

  private static let received = [
    Received(profile: "battery", property: "battery", characteristic: "2a19", hex: "5f", payload: "95"),
    Received(
      profile: "current_time", property: "time", characteristic: "2a2b", hex: "ea070b160a1e0f07c000",
      payload:
        #"{"year":2026,"month":11,"day":22,"hours":10,"minutes":30,"seconds":15,"weekday":7}"#),
    Received(
      profile: "cycling_speed_and_cadence", property: "measurement", characteristic: "2a5b",
      hex: "03d2040000000834120002",
      payload: #"{"wheel_revolutions":1234,"wheel_time":2.0,"crank_revolutions":4660,"crank_time":0.5}"#),
    Received(
      profile: "environmental_sensing", property: "temperature", characteristic: "2a6e", hex: "3cf6",
      payload: "-25.0"),
    Received(
      profile: "environmental_sensing", property: "humidity", characteristic: "2a6f", hex: "6915",
      payload: "54.81"),
    Received(
      profile: "environmental_sensing", property: "pressure", characteristic: "2a6d", hex: "4a760f00",
      payload: "101332.2"),
    Received(
      profile: "health_thermometer", property: "temperature", characteristic: "2a1c",
      hex: "066c0100ffea070b160a1e0003",
      payload:
        #"{"celsius":36.4,"year":2026,"month":11,"day":22,"hours":10,"minutes":30,"seconds":0,"site":"ear"}"#),
    Received(
      profile: "heart_rate", property: "heart_rate", characteristic: "2a37", hex: "104a0002",
      payload: #"{"bpm":74,"rr":[0.5]}"#),
    Received(
      profile: "environmental_sensing", property: "humidity", characteristic: "2a6f", hex: "1027",
      payload: "100.0"),
    Received(
      profile: "scratch_microbit", property: "state", characteristic: "5261da01-fa7e-42ab-850b-7c80220097cc",
      hex: "ff9c00fa" + "0100" + "000001" + "01" + "000000",
      payload:
        #"{"tilt_x":-10.0,"tilt_y":25.0,"button_a":true,"button_b":false,"pin_0":false,"pin_1":false,"pin_2":true,"gesture":1}"#
    ),
    Received(
      profile: "xiaomi_lywsd03mmc", property: "climate",
      characteristic: "ebe0ccc1-7a0a-4b0c-8a1a-6ff2997da3a6",
      hex: "c30a36860b", payload: #"{"temperature":27.55,"humidity":54,"battery":2.95}"#),
  ]

  private static func value(_ fixture: Fixture, _ profile: String, _ characteristic: String, _ hex: String)
    async throws
  {
    let index = names.firstIndex(of: profile) ?? -1
    try await fixture.simulator.control(
      "value", index, #""characteristic":"\#(characteristic)","hex":"\#(hex)""#)
  }

  /// Peripherals with one of the characteristics of their service, the second with a battery besides.
  private static func sparse() -> Plan {
    var plan = Plan(devices: 0)
    plan.absent = [.simulator]
    plan.profilesDirectory = repositoryPath("deploy/profiles")
    plan.entries = """
      {"match":{"name":"mpy-temp"},"profile":"environmental_sensing","id":"climate"},
      {"match":{"name":"Strap"},"profile":"heart_rate","id":"strap"}
      """
    func service(_ uuid: String, _ characteristic: String, _ flags: String, _ value: String) -> String {
      #"{"uuid":"\#(uuid)","characteristics":[{"uuid":"\#(characteristic)","flags":[\#(flags)],"value":"\#(value)"}]}"#
    }
    let temperature = service("181a", "2a6e", #""read","notify""#, "ca08")
    let rate = service("180d", "2a37", #""notify""#, "0048")
    let battery = service("180f", "2a19", #""read","notify""#, "5a")
    plan.files = [
      "0.json": #"{"name":"mpy-temp","address":"E6:7A:00:00:00:01","services":[\#(temperature)]}"#,
      "1.json": #"{"name":"Strap","address":"E6:7A:00:00:00:02","services":[\#(rate),\#(battery)]}"#,
    ]
    return plan
  }

  @Test("A peripheral without what its standard service need not have is no case for a warning")
  func optionalCharacteristics() async throws {
    try await withFixture(Self.sparse()) { fixture in
      try await fixture.startSimulator(
        (0...1).flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
      try await fixture.message("climate/temperature", "22.5")
      try await fixture.message("strap/battery", "90")
      for (topic, keys) in [
        ("e67a00000001", ["temperature", "offset-temperature"]),
        ("e67a00000002", ["heart_rate_bpm", "heart_rate_energy", "battery"]),
      ] {
        let document = try await fixture.observer.message(
          "homeassistant/device/ble_\(topic)/config", within: Fixture.patience
        ) { !$0.payload.isEmpty }
        let own = ["connectivity", "rssi", "firmware", "model", "enabled", "reconnect"]
        let shown = try document.json()["cmps"]?.keys ?? []
        #expect(shown.subtracting(own) == Set(keys), "\(shown)")
      }
      let findings = try await fixture.perform("health")["findings"]?.array ?? []
      #expect(findings.allSatisfy { $0["device"] == nil }, "\(findings)")
      #expect(try fixture.lines(with: "is not offered").isEmpty)
    }
  }

  @Test("Each profile in deploy/profiles reads and writes a peripheral of its kind")
  func profiles() async throws {
    // `BeaconTests` and `HeardProfileTests` use the others.
    #expect(
      try shippedFiles(in: "deploy/profiles", endingWith: ".json")
        == (Self.names + ["atc_thermometer", "eddystone", "ibeacon", "pvvx_thermometer", "ruuvitag"]).map {
          "deploy/profiles/\($0).json"
        }.sorted())
    var plan = Plan(devices: 0)
    plan.bluetooth = #""links": \#(Self.names.count)"#
    plan.absent = [.simulator]
    plan.profilesDirectory = repositoryPath("deploy/profiles")
    plan.entries = Self.names.enumerated().map { index, name in
      let address = "E6:7A:00:00:00:0" + String(index, radix: 16, uppercase: true)
      return #"{"match":{"identifier":"\#(address)"},"profile":"\#(name)","id":"\#(name)"}"#
    }.joined(separator: ",")
    for (index, name) in Self.names.enumerated() {
      let text = String(decoding: try shipped("deploy/profiles/\(name).json"), as: UTF8.self)
      guard let colon = text.firstIndex(of: ":"), let brace = text.lastIndex(of: "}") else {
        throw Failure("no profile in \(name).json")
      }
      let profile = text[text.index(after: colon)..<brace]
      let address = "E6:7A:00:00:00:0" + String(index, radix: 16, uppercase: true)
      plan.files[name + ".json"] = #"{"name":"\#(name)","address":"\#(address)","profile":\#(profile)}"#
    }
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(
        Self.names.flatMap { ["--peripheral", "\(fixture.folder.path)/\($0).json"] })
      for name in Self.names { try await fixture.online(name) }
      for expected in Self.received {
        let mark = try fixture.observer.mark
        try await Self.value(fixture, expected.profile, expected.characteristic, expected.hex)
        try await fixture.message("\(expected.profile)/\(expected.property)", expected.payload, after: mark)
      }
      // Read on each link, after the write that makes it measure.
      let mark = try fixture.observer.mark
      try await Self.value(fixture, "mi_flora", "1a01", "f90000fa0000000d3c00023c00fb349b")
      try await Self.value(fixture, "mi_flora", "1a02", "6413332e312e38")
      try await fixture.simulator.control("disconnect", Self.names.firstIndex(of: "mi_flora") ?? -1)
      try await fixture.message(
        "mi_flora/plant", #"{"temperature":24.9,"light":250,"moisture":13,"conductivity":60}"#, after: mark)
      try await fixture.message("mi_flora/battery", #"{"level":100}"#, after: mark)
      try await Self.value(fixture, "sensortag_keys", "ffe1", "03")
      try await fixture.message("sensortag_keys/keys") { $0.text.contains(#""event_type":"both""#) }
      let uart = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"
      let nordic = try #require(Self.names.firstIndex(of: "nordic_uart"))
      try await fixture.simulator.notify(nordic, uart, ["6f6e", "650a"])
      try await fixture.message("nordic_uart/received") { $0.text.contains(#""value":"one""#) }
      let commands = [
        ("counter/add", "1", "01"), ("sound_player/play", "second", "02"),
        ("nordic_uart/send", "hi", "68690a"),
      ]
      for (topic, payload, _) in commands {
        try await fixture.observer.publish("microbit/\(topic)/set", payload)
        try await fixture.message("\(topic)/result") { (try? $0.json())?["status"]?.string == "accepted" }
      }
    }
  }
}
