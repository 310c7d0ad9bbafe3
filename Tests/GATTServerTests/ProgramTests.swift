import EventLoop
import Glibc
import TestSupport
import Testing

/// Runs microbit-peripheral.
@Suite struct ProgramTests {
  private static func expect(_ arguments: [String], exits status: Int32, printing part: String) async throws {
    let process = try ChildProcess(try program("microbit-peripheral"), arguments)
    #expect(try await process.exitStatus() == status)
    #expect(process.text.contains(part), "\(process.text)")
  }

  private static let invalid: [([String], Int32, String)] = [
    (["--adaptr", "hci1"], 64, "unknown option --adaptr"), (["--profile"], 64, "--profile needs a value"),
    (["--adapter", "usb1"], 64, "not the name of an adapter, such as hci1: usb1"),
    (["extra"], 64, "unexpected argument: extra"), (["--name", ""], 64, "--name: 1 to 248 bytes"),
    (["--generate", "temperature"], 78, "not PROPERTY=GENERATOR: temperature"),
    (["--generate", "temprature=constant:1"], 78, "did you mean temperature?"),
    (["--generate", "temperature=constant:x"], 78, "is not a whole number"),
    (["--profile", "/nonexistent.json"], 78, "/nonexistent.json: No such file or directory"),
    (
      ["--profiles-directory", "/nonexistent", "--profile", "x"], 78,
      "/nonexistent: No such file or directory"
    ),
  ]

  @Test(arguments: invalid.indices)
  func invalidCommandLineIsReported(_ index: Int) async throws {
    let (arguments, status, part) = Self.invalid[index]
    try await Self.expect(arguments, exits: status, printing: part)
  }

  @Test func invalidProfileIsReportedWithItsPosition() async throws {
    let folder = try TemporaryFolder()
    try folder.write(#"{"a":{"properties":{"x":{"service":"1111"}}}}"#, to: "a.json")
    try await Self.expect(["--profile", "\(folder.path)/a.json"], exits: 78, printing: "a.json:1:")
    try folder.write("{}", to: "b.json")
    try await Self.expect(
      ["--profile", "\(folder.path)/b.json"], exits: 78, printing: "0 profiles instead of one")
    try await Self.expect(
      ["--profiles-directory", repositoryPath("deploy/profiles"), "--profile", "countr"], exits: 78,
      printing: "did you mean counter?")
    try await Self.expect(
      ["--profiles-directory", repositoryPath("deploy/profiles"), "--profile", "eddystone"], exits: 78,
      printing: "eddystone is of devices that are only heard")
  }

  @Test func helpAndVersionArePrinted() async throws {
    for (option, part) in [
      ("--help", "--generate PROPERTY=GENERATOR"), ("--version", "microbit-peripheral \(Version.current)"),
    ] {
      try await Self.expect([option], exits: 0, printing: part)
    }
  }

  /// Serves a battery. Standard input is a file: the values are kept after its end.
  private static func battery(_ bus: PrivateBus, input: String, in folder: TemporaryFolder) throws
    -> ChildProcess
  {
    try folder.write(input, to: "values")
    let command = """
      exec '\(try program("microbit-peripheral"))' --adapter hci1 --profile battery \
      --profiles-directory '\(repositoryPath("deploy/profiles"))' <'\(folder.path)/values'
      """
    return try ChildProcess(
      "/bin/sh", ["-c", command], environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address])
  }

  @Test func nothingIsReadAfterALineThatIsTooLong() async throws {
    let bus = try await PrivateBus()
    let long = String(repeating: "x", count: 100_000)
    let folder = try TemporaryFolder()
    let process = try Self.battery(bus, input: "batery 1\n\(long)\nbatery 2\n", in: folder)
    _ = try await process.line { $0.hasSuffix("line 2: longer than 65536 bytes: nothing more is read") }
    #expect(process.text.contains("line 1:") && !process.text.contains("line 3:"))
    process.signal(SIGTERM)
    #expect(try await process.exitStatus() == 0)
  }

  @Test func profileIsServedByNameAndInvalidInputIsReported() async throws {
    let bus = try await PrivateBus()
    let bluetoothd = try await FakeBluetoothd.start(bus: bus.address)
    let folder = try TemporaryFolder()
    let input = "# battery\r\nbattery 55\r\nbatery 1\nbattery 300"
    let process = try Self.battery(bus, input: input, in: folder)
    // In any order.
    var missing: Set = [
      "did you mean battery?", "line 4: battery: 300 is outside 0…255",
      "serving battery on hci1 (02:00:5E:00:53:02)",
    ]
    while !missing.isEmpty {
      let line = try await process.line { [missing] line in missing.contains { line.contains($0) } }
      missing = missing.filter { !line.contains($0) }
    }
    #expect(process.text.contains("line 3:"))
    let level = try await bluetoothd.path(.init(short: 0x2A19))
    #expect(try await bluetoothd.read(level) == [55])
    process.signal(SIGTERM)
    #expect(try await process.exitStatus() == 0)
    try await bluetoothd.called("UnregisterApplication")
  }
}
