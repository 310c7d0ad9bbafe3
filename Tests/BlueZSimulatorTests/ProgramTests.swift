import Glibc
import TestSupport
import Testing

/// The program itself: its command line, its control socket, and a client that shares no code with it.
@Suite struct ProgramTests {
  private static let tests = String(#filePath.dropLast("ProgramTests.swift".count))

  /// The program, when it is ready.
  private func simulator(_ arguments: [String]) async throws -> ChildProcess {
    let child = try ChildProcess(try program("microbit-simulator"), arguments)
    _ = try await child.line { $0 == "ready" }
    return child
  }

  // MARK: Command line

  @Test(arguments: [
    ["--devices", "x"], ["--devices", "-1"], ["--devices"], ["--bogus"], ["--period", "65536"], ["word"],
    ["--name", "nobody"], ["--address", "0=12:34"], ["--scan-ms", "0"], ["--connect-ms", "1.5"],
    ["--services", "bogus"], ["--radio-scenario", "bogus"], ["--peripheral", "/nonexistent/peripheral"],
  ])
  func badUsageIsNamedAndEndsWith64(_ arguments: [String]) async throws {
    let child = try ChildProcess(
      try program("microbit-simulator"), arguments + ["--bus", "unix:path=/nonexistent"])
    #expect(try await child.exitStatus() == 64)
    #expect(child.text.contains(arguments.count > 1 ? arguments[1] : arguments[0]))
  }

  @Test(arguments: ["", "unix:path=/run/dbus/system_bus_socket", "unix:path=/var/run/dbus/system_bus_socket"])
  func theRealSystemBusIsRefused(_ address: String) async throws {
    let child = try ChildProcess(
      try program("microbit-simulator"), environment: ["DBUS_SYSTEM_BUS_ADDRESS": address])
    #expect(try await child.exitStatus() == 64)
    #expect(child.text.contains("--system-bus"))
  }

  @Test func helpNamesEveryOption() async throws {
    let child = try ChildProcess(try program("microbit-simulator"), ["--help"])
    #expect(try await child.exitStatus() == 0)
    for option in [
      "--devices", "--decoys", "--bus", "--control", "--connect-ms", "--seed", "--minimum-period",
      "--services", "--peripheral",
    ] {
      #expect(child.text.contains(option))
    }
  }

  @Test func noBusEndsWith69() async throws {
    let child = try ChildProcess(try program("microbit-simulator"), ["--bus", "unix:path=/nonexistent/bus"])
    #expect(try await child.exitStatus() == 69)
    #expect(child.text.contains("/nonexistent/bus"))
  }

  @Test func secondInstanceExitsWith69AndSIGTERMEndsTheFirstWith0() async throws {
    let bus = try await PrivateBus()
    let first = try await simulator(["--bus", bus.address])
    let second = try ChildProcess(try program("microbit-simulator"), ["--bus", bus.address])
    #expect(try await second.exitStatus() == 69)
    first.signal(SIGTERM)
    #expect(try await first.exitStatus() == 0)
  }

  // MARK: Control

  @Test func theControlSocketAnswersLineByLine() async throws {
    let bus = try await PrivateBus()
    let folder = try TemporaryFolder()
    let path = folder.path + "/control"
    let child = try await simulator(
      ["--bus", bus.address, "--devices", "1", "--decoys", "1", "--control", path])
    let microBit =
      #"{"address":"D0:5A:00:00:C0:DE","armed":0,"bonded":false,"connected":false,"gone":false,"i":0,"#
      + #""name":"BBC micro:bit [zugev]","notifying":false,"period":1000,"sent":0,"stuck":false,"#
      + #""subscribed":[],"temp":33}"#
    #expect(try await ask(path, #"{"op":"temp","i":0,"v":33}"#) == microBit)
    let stranger =
      #"{"address":"E5:7A:00:00:00:01","armed":0,"bonded":false,"connected":false,"gone":false,"i":1,"name":"Polar H7 1","#
      + #""notifying":false,"sent":0,"stuck":false,"subscribed":[]}"#
    #expect(try await ask(path, #"{"op":"list"}"#) == "[\(microBit),\(stranger)]")
    for period in [1, 65535, 1000] {
      let held = microBit.replacing(#""period":1000"#, with: "\"period\":\(period)")
      #expect(try await ask(path, "{\"op\":\"period\",\"v\":\(period)}") == held)
      #expect(try await ask(path, #"{"op":"period"}"#) == held)
      let all = try await ask(path, "{\"op\":\"period\",\"all\":true,\"v\":\(period)}")
      #expect(all == "[\(held),\(stranger)]")
    }
    #expect(try await ask(path, #"{"op":"vanish","i":1}"#).contains(#""gone":true"#))
    for operation in ["power", "plug"] {
      for on in [false, true] {
        #expect(try await ask(path, #"{"op":"\#(operation)","on":\#(on)}"#) == #"{"status":"ok"}"#)
      }
    }
    for wrong in [
      "", "nonsense", "{}", #"{"op":"bogus"}"#, #"{"op":"temp","i":2}"#, #"{"op":"temp","v":300}"#,
      #"{"op":"value","hex":"0"}"#, #"{"op":"value","characteristic":"2a37","hex":"00"}"#,
      #"{"op":"value","characteristic":"nonsense","hex":"00"}"#, #"{"op":"value","characteristic":"2a24"}"#,
      #"{"op":"writes"}"#, #"{"op":"writes","i":2,"characteristic":"2a24"}"#, #"{"op":"period","i":-1}"#,
      #"{"op":"period","v":65536}"#,
    ] {
      #expect(try await ask(path, wrong).hasPrefix(#"{"error":"#), "\(wrong)")
    }
    child.signal(SIGINT)
    #expect(try await child.exitStatus() == 0)
    #expect(access(path, F_OK) != 0)
  }

  @Test func valuesAreSetAndWritesShown() async throws {
    let bus = try await PrivateBus()
    let folder = try TemporaryFolder()
    let path = folder.path + "/control"
    let description = folder.path + "/counter.json"
    let file = try #require(fopen(description, "w"))
    fputs(
      #"{"name":"Counter","services":[{"uuid":"1111","characteristics":[{"uuid":"2222","flags":["write"]}]}]}"#,
      file)
    fclose(file)
    let child = try await simulator([
      "--bus", bus.address, "--devices", "1", "--services", "temperature,buttons,accelerometer,led",
      "--peripheral", description, "--control", path,
    ])
    let counter = try await ask(path, #"{"op":"value","i":1,"characteristic":"2222","hex":"01ff"}"#)
    #expect(counter.contains(#""name":"Counter""#))
    for characteristic in ["da90", "da91", "ca4b", "fb24", "7b77", "93ee", "0d2d"] {
      let uuid = "e95d\(characteristic)-251d-470a-a062-fa1922dfa9a8"
      let state = try await ask(path, #"{"op":"value","characteristic":"\#(uuid)","hex":"0100"}"#)
      #expect(state.contains(#""name":"BBC micro:bit [zugev]""#))
      // What is set was not written.
      let writes = try await ask(path, #"{"op":"writes","characteristic":"\#(uuid)"}"#)
      #expect(writes == #"{"count":0,"writes":[]}"#)
    }
    for service in ["1111", "180a"] {
      let writes = try await ask(
        path, #"{"op":"writes","i":1,"service":"\#(service)","characteristic":"2222","instance":0}"#)
      #expect(writes.contains("error") == (service == "180a"))
    }
    let second = try await ask(path, #"{"op":"writes","i":1,"characteristic":"2222","instance":1}"#)
    #expect(second.contains("error"))
    child.signal(SIGTERM)
    #expect(try await child.exitStatus() == 0)
  }

  @Test func aLongAnswerComesWhole() async throws {
    let bus = try await PrivateBus()
    let folder = try TemporaryFolder()
    let path = folder.path + "/control"
    let child = try await simulator(["--bus", bus.address, "--devices", "5000", "--control", path])
    let answer = try await ask(path, #"{"op":"list"}"#)
    #expect(answer.split(separator: "{").count == 5001)
    child.signal(SIGTERM)
    #expect(try await child.exitStatus() == 0)
  }

  @Test func aReceiverIsPluggedInReadAndUnplugged() async throws {
    let bus = try await PrivateBus()
    let folder = try TemporaryFolder()
    let path = folder.path + "/control"
    let child = try await simulator([
      "--bus", bus.address, "--devices", "0", "--control", path, "--radio", folder.path, "--radio-scenario",
      "every=20,presses=0",
    ])
    let link = try #require(try names(in: folder.path).first { $0.hasSuffix("-if01") })
    #expect(link.hasPrefix("usb-Arm_BBC_micro:bit_CMSIS-DAP_9904") && link.utf8.count == 32 + 48 + 5)
    // Nobody reads: more than DAPLink keeps is dropped.
    try await eventually("bytes are dropped") {
      try await !ask(path, #"{"op":"radio"}"#).contains(#""dropped":0,"#)
    }
    try await Self.read("\(folder.path)/\(link)", until: ["<DAPLink:Overflow>", ",temp,"])
    let port = open("\(folder.path)/\(link)", O_RDWR | O_NOCTTY)
    var bytes = [UInt8](repeating: 0, count: 1024)
    #expect(write(port, "hello", 5) == 5)
    try await eventually("it is open, and what was written is read") {
      let state = try await ask(path, #"{"op":"radio"}"#)
      return state.contains(#""open":true"#) && state.contains(#""written":5}"#)
    }
    #expect(
      try await ask(path, #"{"op":"radio","action":"press","all":true}"#).split(separator: ",").count == 30)
    #expect(try await ask(path, #"{"op":"radio","action":"press","i":30}"#).contains("error"))
    #expect(try await ask(path, #"{"op":"radio","action":"unplug"}"#).contains(#""open":false"#))
    while Glibc.read(port, &bytes, bytes.count) > 0 {}
    close(port)
    #expect(access("\(folder.path)/\(link)", F_OK) != 0)
    #expect(try await ask(path, #"{"op":"radio","action":"plug"}"#).contains(#""open":false"#))
    #expect(access("\(folder.path)/\(link)", F_OK) == 0)
    child.signal(SIGTERM)
    #expect(try await child.exitStatus() == 0)
    #expect(access("\(folder.path)/\(link)", F_OK) != 0)
  }

  /// Reads the port until it has given all of `parts`.
  private static func read(_ path: String, until parts: [String]) async throws {
    try await deadline(patience, "\(parts) at \(path)") {
      let port = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK)
      defer { close(port) }
      var text = ""
      while !parts.allSatisfy({ text.contains($0) }) {
        try Task.checkCancellation()
        let more = await offPool { () -> [UInt8] in
          var state = pollfd(fd: port, events: Int16(POLLIN), revents: 0)
          var bytes = [UInt8](repeating: 0, count: 1024)
          guard poll(&state, 1, 1000) > 0 else { return [] }
          let count = Glibc.read(port, &bytes, bytes.count)
          return Array(bytes.prefix(max(0, count)))
        }
        text += String(decoding: more, as: UTF8.self)
      }
    }
  }

  // MARK: An independent client

  @Test func bleakTakesItForBlueZ() async throws {
    let venv = try ChildProcess(Self.tests + "../../scripts/bleak-venv")
    let made = try await venv.exitStatus(within: .seconds(900))
    guard made == 0, let python = venv.text.split(separator: "\n").last else {
      Issue.record("bleak cannot be had for this test:\n\(venv.text)")
      return
    }
    let bus = try await PrivateBus()
    let simulator = try await simulator(
      ["--bus", bus.address, "--decoys", "1", "--connect-ms", "100", "--disconnect-ms", "100"])
    let session = try ChildProcess(
      String(python), [Self.tests + "bleak/session.py"],
      environment: ["DBUS_SYSTEM_BUS_ADDRESS": bus.address])
    let status = try await session.exitStatus(within: .seconds(300))
    #expect(status == 0 && session.text.hasSuffix("done"), "\(session.text)")
    simulator.signal(SIGTERM)
  }
}
