import Glibc
import TestSupport
import Testing

/// The commands that ask the running gateway, and `inspect`, which works without one too.
@Suite struct TerminalTests {
  private static let properties =
    #"{"match":{"name_prefix":"BBC micro:bit"},"properties":["temperature","period","button_a","led_text"]}"#

  static func plan(hasGateway: Bool) -> Plan {
    var plan = Plan()
    plan.devices = 1
    plan.decoys = 1
    plan.entries = properties
    plan.simulator = ["--services", "temperature,buttons,led"]
    if !hasGateway { plan.absent = [.gateway, .observer] }
    return plan
  }

  /// With a micro:bit, which is online if there is a gateway.
  func withDevice(
    hasGateway: Bool = true, _ body: @escaping @Sendable (Fixture, VirtualBlueZ.Device) async throws -> Void
  ) async throws {
    try await withFixture(Self.plan(hasGateway: hasGateway)) { fixture in
      let device = try await fixture.simulator.device(0)
      if hasGateway { try await fixture.online(device.id) }
      try await body(fixture, device)
    }
  }

  @Test("A property is read and written")
  func readAndWrite() async throws {
    try await withDevice { fixture, device in
      let temperature = try await fixture.command(["read", device.address, "temperature"])
      #expect(temperature.status == 0)
      #expect(temperature.text.wholeMatch(of: /-?\d+ °C/) != nil, "\(temperature.text)")
      let written = try await fixture.command(["write", device.id, "period", "500"])
      #expect(written.status == 0 && written.text == "applied: 500 ms", "\(written.text)")
      #expect(try await fixture.simulator.device(0).period == 500)
      // By a part of its name.
      let name = try #require(device.name.split(separator: "[").last?.dropLast())
      let period = try await fixture.command(["read", name.uppercased(), "period", "--json"])
      #expect(period.status == 0 && period.text.contains(#""status":"read","actual":500"#), "\(period.text)")
      let shown = try await fixture.command(["write", device.id, "led_text", "Hello"])
      #expect(shown.status == 0 && shown.text == "accepted", "\(shown.text)")
    }
  }

  @Test("A command that needs a running gateway says how to start one, with status 69")
  func withoutGateway() async throws {
    try await withDevice(hasGateway: false) { fixture, device in
      for command in [
        ["read", device.address, "temperature"], ["write", device.address, "period", "500"], ["watch"],
        ["pair", device.address], ["unpair", device.address], ["identify", device.address], ["devices"],
        ["bonds"], ["add", device.address], ["rename", device.address, "Hall"], ["remove", device.address],
        ["permit-join"],
      ] {
        let (status, text) = try await fixture.command(command)
        let start =
          "sudo systemctl start microbit-gateway, or microbit-gateway run --config "
          + "\(fixture.folder.path)/config.json"
        #expect(status == 69 && text == "no gateway is running: start it with \(start)", "\(text)")
      }
      let named = try await fixture.command(["inspect", device.address, "--gateway", "attic"])
      #expect(named.status == 69 && named.text.hasPrefix("no gateway attic is running: "), "\(named.text)")
      #expect(try await !fixture.simulator.device(0).isConnected)
    }
  }

  @Test("Devices are listed, added, renamed and removed")
  func devices() async throws {
    var plan = Plan()
    plan.devices = 2
    plan.entries = #"{"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"kitchen","area":"Home"}"#
    try await withFixture(plan) { fixture in
      let other = try await fixture.simulator.device(1)
      try await fixture.online("kitchen")
      let listed = try await fixture.command(["devices"])
      let rows = listed.text.split(separator: "\n")
      #expect(listed.status == 0 && rows.count == 2, "\(listed.text)")
      #expect(rows[0].hasPrefix("ID "))
      #expect(rows[1].contains(/^kitchen +.+ +Home +online +-\d+ dBm +temperature, period$/), "\(rows[1])")
      let added = try await fixture.command(["add", other.address, "Küche am Fenster", "Kitchen"])
      #expect(added.text == "\(other.address) is added as kueche-am-fenster", "\(added.text)")
      try await fixture.online("kueche-am-fenster")
      let renamed = try await fixture.command(["rename", "kueche-am-fenster", "Hall"])
      #expect(renamed.status == 0 && renamed.text.contains("Hall"), "\(renamed.text)")
      #expect(try await fixture.listed("hall")?["name"]?.string == "Hall")
      #expect(try await fixture.retained(of: "kueche-am-fenster").isEmpty)
      let taken = try await fixture.command(["rename", "hall", "Kitchen"])
      #expect(taken.status != 0 && taken.text.contains("kitchen"), "\(taken.text)")
      let removed = try await fixture.command(["remove", "hall"])
      let again = "microbit-gateway add \(other.address) --config \(fixture.folder.path)/config.json"
      #expect(removed.text == "hall is removed: add it again with \(again)")
      #expect(try await fixture.listed("hall") == nil)
      let json = try await fixture.command(["devices", "--json"])
      #expect(json.text.hasPrefix("[") && json.text.contains("kitchen"))
      _ = try await fixture.stopGateway()
      let alone = try await fixture.command(["devices"])
      #expect(alone.status == 69 && alone.text.contains("no gateway is running"), "\(alone.text)")
    }
  }

  private static let invalid: [([String], Int32, String)] = [
    (["read", "ID", "wings"], 64, "no property wings"),
    (["read", "ID", "button_a"], 64, "button_a cannot be read, as it is an event: watch shows it"),
    (["write", "ID", "period", "5"], 64, "5 is below the smallest period"),
    (["write", "ID", "period", "-5"], 64, "-5 is below the smallest period"),
    (["write", "ID", "led_text", "-x"], 64, "write --"),
    (["write", "ID", "period", "soon"], 64, "soon"),
    (["write", "ID", "temperature", "5"], 64, "temperature cannot be set"),
    (["read", "C5:A1:B2:C3:D4:FF", "temperature", "--timeout", "1"], 69, "C5:A1:B2:C3:D4:FF"),
    (["remove", "C5:A1:B2:C3:D4:FF"], 69, "is not a device of the gateway"),
    (["rename", "C5:A1:B2:C3:D4:FF", "Hall"], 69, "is not a device of the gateway"),
    (["watch", "ID", "wings"], 64, "no property wings"),
    (["inspect", "nobody"], 69, "nobody"),
  ]

  @Test("An invalid command is refused with the reason and an exit status")
  func invalidCommands() async throws {
    try await withDevice { fixture, device in
      for (arguments, expected, reason) in Self.invalid {
        let (status, text) = try await fixture.command(arguments.map { $0 == "ID" ? device.address : $0 })
        #expect(status == expected && text.contains(reason), "\(arguments): \(status) \(text)")
      }
    }
  }

  @Test("The command line says what would help: properties not in use, blank letters, no bond")
  func hints() async throws {
    try await withDevice { fixture, device in
      for command in [["read", device.id, "accelerometer"], ["watch", device.id, "accelerometer"]] {
        let unused = try await fixture.command(command)
        #expect(
          unused.status == 64
            && unused.text.contains(
              "does not use accelerometer: add it to its properties, in config.json or by device/options"),
          "\(unused.text)")
      }
      let text = try await fixture.command(["write", device.id, "led_text", "Grüße"])
      #expect(text.status == 0 && text.text.contains("cannot show \"üß\", which stays blank"), "\(text.text)")
      let unpaired = try await fixture.command(["unpair", device.id])
      #expect(unpaired.status == 0 && unpaired.text == "\(device.id) was not paired", "\(unpaired.text)")
    }
  }

  @Test("A disabled device is unavailable")
  func disabled() async throws {
    try await withDevice { fixture, device in
      try await fixture.perform("device/options", #"{"id":"\#(device.id)","options":{"enabled":false}}"#)
      for arguments in [["read", device.id, "period"], ["write", device.id, "period", "500"]] {
        let (status, text) = try await fixture.command(arguments)
        #expect(status == 69 && text.contains("is disabled"), "\(arguments): \(status) \(text)")
      }
    }
  }

  @Test("An ambiguous part of a name is refused, and both devices are named", arguments: [true, false])
  func ambiguous(hasGateway: Bool) async throws {
    var plan = Self.plan(hasGateway: hasGateway)
    plan.devices = 2
    try await withFixture(plan) { fixture in
      let devices = try await fixture.simulator.devices().prefix(2)
      if hasGateway { for device in devices { try await fixture.online(device.id) } }
      for command in [["watch", "micro:bit"], ["read", "micro:bit", "temperature"], ["inspect", "BBC"]]
      where hasGateway || command[0] == "inspect" {
        let (status, text) = try await fixture.command(command)
        #expect(status == 64 && text.contains("not unique"), "\(text)")
        for device in devices { #expect(text.contains(device.address), "\(text)") }
      }
    }
  }

  @Test("watch prints readings as lines, JSON and CSV")
  func watch() async throws {
    try await withDevice { fixture, device in
      for (option, part) in [
        ("", "  \(device.id)  temperature "),
        ("--json", "{\"device\":\"\(device.id)\",\"property\":\"temperature\",\"value\":"),
        ("--csv", "Z,\(device.id),temperature,"),
      ] {
        let watch = try fixture.start(["watch"] + (option.isEmpty ? [] : [option]))
        _ = try await watch.line(within: Fixture.patience) { $0.contains(part) }
        if option == "--csv" { #expect(watch.text.hasPrefix("time,device,property,value,unit\n")) }
        watch.signal(SIGINT)
        #expect(try await watch.exitStatus(within: Fixture.patience) == 0, "\(watch.text)")
      }
    }
  }

  @Test("watch can be interrupted while its output is not read")
  func watchUnread() async throws {
    var plan = Self.plan(hasGateway: true)
    plan.simulator += ["--period", "20"]
    try await withFixture(plan) { fixture in
      let device = try await fixture.simulator.device(0)
      try await fixture.online(device.id)
      let pipe = fixture.folder.path + "/output"
      try #require(mkfifo(pipe, 0o600) == 0)
      let reader = open(pipe, O_RDONLY | O_NONBLOCK)
      defer { close(reader) }
      let pageSize: Int32 = 4096
      try #require(fcntl(reader, 1031 /* F_SETPIPE_SZ */, pageSize) == pageSize)
      let watch = try fixture.start(
        ["watch", "--json"], prefix: ["/bin/sh", "-c", #"exec "$@" >'\#(pipe)'"#, "sh"])
      // Some 100 bytes each.
      try await fixture.simulator.waitUntil(0, hasSent: fixture.simulator.device(0).sent + 200)
      watch.signal(SIGINT)
      #expect(try await watch.exitStatus(within: Fixture.patience) == 0)
    }
  }

  @Test("scan shows the matching profile of each peripheral, or an entry to copy")
  func scan() async throws {
    try await withFixture(Self.plan(hasGateway: true)) { fixture in
      let devices = try await fixture.simulator.devices()
      for options in [["--timeout", "4"], ["--live", "--timeout", "4"]] {
        let (status, text) = try await fixture.command(["scan"] + options)
        #expect(status == 0)
        let lines = text.split(separator: "\n")
        let own = lines.filter { $0.contains(devices[0].address) }
        #expect(own.count == 1 && own[0].contains("  microbit  connect"), "\(text)")
        let decoy = lines.filter { $0.contains(devices[1].address) }
        #expect(
          decoy.count == 1
            && decoy[0].contains("{\"match\":{\"identifier\":\"\(devices[1].address)\"},\"id\":"),
          "\(text)")
      }
    }
  }

  @Test("scan --live runs until it is interrupted")
  func scanLive() async throws {
    try await withDevice(hasGateway: false) { fixture, device in
      let scan = try fixture.start(["scan", "--live"])
      _ = try await scan.line(within: Fixture.patience) { $0.contains(device.address) }
      scan.signal(SIGINT)
      #expect(try await scan.exitStatus(within: Fixture.patience) == 0)
    }
  }

  @Test("watch ends when the gateway ends")
  func gatewayEnds() async throws {
    try await withDevice { fixture, device in
      let watch = try fixture.start(["watch", device.id])
      _ = try await watch.line(within: Fixture.patience) { $0.contains("temperature") }
      _ = try await fixture.stopGateway()
      #expect(try await watch.exitStatus(within: Fixture.patience) == 69)
      #expect(watch.text.contains("the gateway has ended"))
    }
  }

  @Test("A write to an offline device waits for it until the timeout")
  func offline() async throws {
    try await withDevice { fixture, device in
      try await fixture.vanish(0, device.id)
      let read = try await fixture.command(["read", device.id, "temperature"])
      let offline = try Regex(
        "\(device.id) is offline since \\d\\d:\\d\\d:\\d\\d: .{8,}"
      )
      #expect(read.status == 69 && read.text.contains(offline), "\(read.text)")
      let timedOut = try await fixture.command(["write", device.id, "period", "700", "--timeout", "1"])
      #expect(
        timedOut.status == 69 && timedOut.text.contains(offline)
          && timedOut.text.contains("; waiting up to 1 s")
          && timedOut.text.contains("not applied within 1 s"),
        "\(timedOut.text)")
      let write = try fixture.start(["write", device.id, "period", "800"])
      _ = try await write.line(within: Fixture.patience) { $0.contains("waiting up to 30 s") }
      try await fixture.simulator.control("return", 0)
      #expect(try await write.exitStatus(within: Fixture.patience) == 0, "\(write.text)")
      #expect(write.text.contains("applied: 800 ms"))
    }
  }

  @Test("Access to the gateway of another user is refused, with the remedy")
  func anotherUser() async throws {
    try await withDevice { fixture, device in
      var other: [String] = []
      if getuid() == 0 {
        // The fixture's folder is private; the other user must be able to reach the socket.
        chmod(fixture.folder.path, 0o755)
        other = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
      } else {
        chmod(fixture.folder.path + "/fixture.sock", 0)
      }
      let (status, text) = try await fixture.command(["read", device.id, "temperature"], prefix: other)
      #expect(status == 69)
      #expect(text.contains("the gateway fixture runs as ") && text.contains("use sudo"), "\(text)")
      #expect(text.contains("usermod -aG"), "\(text)")
    }
  }

  @Test("An adapter used by a gateway that cannot be reached is reported")
  func adapterInUse() async throws {
    try await withDevice { fixture, device in
      let process = try ChildProcess(
        try program("microbit-gateway"),
        ["inspect", device.id, "--config", fixture.folder.path + "/config.json"],
        environment: fixture.environment.merging(["RUNTIME_DIRECTORY": fixture.folder.path + "/none"]) { $1 })
      #expect(try await process.exitStatus(within: Fixture.patience) == 69)
      #expect(process.text.contains("a gateway that cannot be reached (process "), "\(process.text)")
    }
  }

  @Test("The requests of the command line can also be sent over MQTT")
  func requests() async throws {
    try await withDevice { fixture, device in
      let inspected = try await fixture.perform("device/inspect", #"{"id":"\#(device.id)"}"#)
      #expect(inspected["profile"]?.string == "microbit" && inspected["fits"]?.bool == true)
      let adapter = try await fixture.perform("adapter/state")
      #expect(adapter["state"]?.string == "on" && adapter["adapter"]?.string == "hci0")
      let refusal = try await fixture.refusal("device/inspect", #"{"identifier":"C5:A1:B2:C3:D4:FF"}"#)
      #expect(refusal == "C5:A1:B2:C3:D4:FF is not in range")
    }
  }

  private static let firmware = #"""
    "dangerous": { "requires": ["fe59"], "properties": {
      "buttonless": { "service": "fe59", "characteristic": "8ec90003-f315-4f60-9fb8-838830daea50",
        "access": ["write"], "write": "request", "kind": "event", "type": "bytes" } } },
    "flashing": { "properties": {
      "partial": { "service": "e97dd91d-251d-470a-a062-fa1922dfa9a8",
        "characteristic": "e97d3b10-251d-470a-a062-fa1922dfa9a8",
        "access": ["write"], "write": "command", "kind": "event", "type": "bytes" } } }
    """#
  private static let bootloader = #"""
    { "name": "DfuTarg", "address": "C5:A1:B2:C3:D4:E5", "advertises": ["fe59"], "services": [
      { "uuid": "fe59", "characteristics": [
        { "uuid": "8ec90003-f315-4f60-9fb8-838830daea50", "flags": ["write", "indicate"], "value": "" } ] },
      { "uuid": "e97dd91d-251d-470a-a062-fa1922dfa9a8", "characteristics": [
        { "uuid": "e97d3b10-251d-470a-a062-fa1922dfa9a8", "flags": ["write-without-response", "notify"], "value": "" } ] } ] }
    """#
  private static let firmwareProperties = [("dangerous", "buttonless"), ("flashing", "partial")]

  @Test(
    "Characteristics for firmware updates are never written, even with a profile",
    arguments: firmwareProperties)
  func firmware(profile: String, property: String) async throws {
    var plan = Plan()
    plan.devices = 0
    plan.profiles = Self.firmware
    plan.entries = #"{"match":{"identifier":"C5:A1:B2:C3:D4:E5"},"id":"target","profile":"\#(profile)"}"#
    plan.files = ["bootloader.json": Self.bootloader]
    plan.absent = [.simulator, .gateway]
    try await withFixture(plan) { fixture in
      try await fixture.startSimulator(["--peripheral", fixture.folder.path + "/bootloader.json"])
      try fixture.startGateway()
      try await fixture.online("target")
      let (status, text) = try await fixture.command(["write", "target", property, "01"])
      #expect(status == 1 && text.contains("firmware"), "\(text)")
      let result = try await fixture.perform(
        "property/set", #"{"id":"target","property":"\#(property)","value":"01"}"#)
      #expect(result["status"]?.string == "failed")
      let mark = try fixture.observer.mark
      try await fixture.observer.publish("microbit/target/\(property)/set", "01")
      let outcome = try await fixture.message("target/\(property)/result", after: mark).json()
      #expect(outcome["reason"]?.string?.contains("firmware") == true)
      let inspected = try await fixture.command(["inspect", "target"])
      #expect(inspected.text.contains("never written"))
    }
  }
}
