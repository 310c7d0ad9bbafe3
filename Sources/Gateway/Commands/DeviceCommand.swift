import Configuration
import EventLoop
import GATT
import Glibc
import JSON

/// A command that asks the running gateway; `inspect` works without one too.
struct DeviceCommand: Sendable, Equatable {
  enum Action: Sendable, Equatable {
    case inspect
    case read(property: String)
    case write(property: String, value: String)
    /// Shows values of a property; nil: of all properties.
    case watch(property: String?, csv: Bool)
    /// Pairs, with a passkey; nil: the user is asked if the peripheral displays one.
    case pair(passkey: Int?)
    case unpair
    /// Shows its name on its LEDs.
    case identify
    /// Prints the data log as CSV.
    case log(raw: Bool)
    case list
    /// Adds a device for good, with a name and an area.
    case add(name: String?, area: String?)
    case rename(to: String)
    case remove
    /// Adds micro:bits in range, for so many seconds; nil: the gateway's default.
    case permitJoin(seconds: Int?)
    /// Records the readings of all devices.
    case record(RecordCommand)
    /// Lists the devices that are paired.
    case bonds
  }

  let action: Action
  /// What the user calls the device; nil, for `watch`: all.
  let name: String?
  let json: Bool
  /// How long to wait for the device.
  let timeout: Duration
  let configuration: String?
  /// The id of a running gateway; nil: the only one.
  let gateway: String?

  @LoopActor func run() async throws(CommandFailure) {
    guard let access = try GatewayAccess.open(self) else {
      guard action == .inspect else { throw GatewayAccess.noneRuns(configuration: configuration) }
      return show(inspection: try await Inspector.inspect(name ?? "", configuration, timeout))
    }
    defer { access.close() }
    try await perform(with: access)
  }

  @LoopActor private func perform(with access: GatewayAccess) async throws(CommandFailure) {
    switch action {
    case .inspect:
      let target = try await access.find(name ?? "", orInRange: true)
      let data = try await access.request("device/inspect", target.selector, within: .seconds(120))
      show(inspection: data)
    case .read(let property):
      let target = try await access.device(name ?? "")
      if let reason = try await access.offline(target) { throw CommandFailure(.unavailable, reason) }
      try report(
        try await request("property/get", ["property": .string(property)], target, access), property)
    case .write(let property, let value):
      let target = try await access.device(name ?? "")
      let seconds = Int(timeout.components.seconds)
      if let reason = try await access.offline(target) {
        printError("\(reason); waiting up to \(seconds) s …")
      }
      warn(of: value, for: property, target)
      let keys: JSONValue = [
        "property": .string(property), "value": .string(value), "ttl": .integer(seconds),
      ]
      try report(try await request("property/set", keys, target, access), property)
    case .watch(let property, let csv):
      let watching = Watching(access, property: property, format: csv ? .csv : json ? .json : .text)
      try await watching.run(name)
    case .pair(let passkey):
      try await access.pair(try await access.find(name ?? "", orInRange: true), passkey: passkey)
    case .unpair:
      let target = try await access.find(name ?? "", orInRange: false)
      _ = try await access.request("device/unpair", target.selector, within: .seconds(30))
      printOutput("\(target.label) \(target.isPaired ? "is no longer" : "was not") paired")
    case .identify:
      let target = try await access.device(name ?? "")
      let data = try await request("device/identify", [:], target, access)
      printOutput("\(target.label) " + (data["value"].map { "shows \($0.shown)" } ?? "blinks"))
    case .log(let raw):
      let target = try await access.device(name ?? "")
      let keys: JSONValue = ["id": target.id.map(JSONValue.string), "raw": .bool(raw)]
      // A full log takes minutes.
      let data = try await access.request("device/log", keys, within: .seconds(7200))
      let csv = data["csv"]?.text ?? ""
      // What a program logs could control the terminal; the table is harmless.
      let isShown = raw && isatty(STDOUT_FILENO) != 0
      printOutput(isShown ? Excerpt.harmlessLines(csv) : csv, terminator: "")
    case .list:
      let devices = try await access.request("devices")
      if json { printOutput(devices.text()) } else { list(devices, of: access) }
    case .record(let record): try await record.run(access, json: json)
    case .bonds:
      let paired = try await access.request("devices").elements.compactMap { Target($0) }.filter(\.isPaired)
      if paired.isEmpty { printError("no device is paired") }
      for target in paired { printOutput(target) }
    case .add(let label, let area): try await add(label, area, access)
    case .rename(let label): try await rename(to: label, access)
    case .permitJoin(let seconds):
      let data = try await access.request("permit_join", ["time": seconds.map(JSONValue.integer)])
      let time = data["time"]?.integer ?? 0
      printOutput(
        time == 0
          ? "no more micro:bits are added"
          : "micro:bits in range in the next \(time) s are added: \(access.command("devices")) lists them"
      )
    case .remove:
      let target = try await access.device(name ?? "")
      _ = try await access.request("device/remove", ["id": target.id.map(JSONValue.string)])
      printOutput("\(target.label) is removed: add it again with \(access.command("add \(target.address)"))")
    }
  }

  @LoopActor private func show(inspection data: JSONValue) {
    if json { printOutput(data.text()) } else { printOutput(InspectionText(data)) }
  }

  @LoopActor private func list(_ devices: JSONValue, of access: GatewayAccess) {
    let lines = DeviceList(devices, gateway: access.gateway).lines
    if lines.isEmpty {
      let options = configuration.map { " --config \($0.shellWord)" } ?? ""
      printError("the gateway \(access.gateway) knows no device yet: microbit-gateway scan\(options)")
    }
    for line in lines { printOutput(line) }
  }

  @LoopActor private func add(_ label: String?, _ area: String?, _ access: GatewayAccess)
    async throws(CommandFailure)
  {
    let target = try await access.find(name ?? "", orInRange: true)
    let device = try await access.request(
      "device/add",
      [
        "identifier": .string(target.address.description), "name": label.map(JSONValue.string),
        "id": label.flatMap { TopicWord.similar(to: $0) }.map(JSONValue.string),
        "area": area.map(JSONValue.string),
      ])
    printOutput("\(target.address) is added as \(device["id"]?.shown ?? "")")
  }

  /// The name, and the id that follows from it, as in `init`.
  @LoopActor private func rename(to label: String, _ access: GatewayAccess) async throws(CommandFailure) {
    let target = try await access.device(name ?? "")
    let data = try await access.request(
      "device/rename", ["id": target.id.map(JSONValue.string), "name": .string(label)])
    printOutput("\(target.label) is now \(Excerpt(label)), in topics \(data["to"]?.shown ?? "")")
  }

  /// The font of the micro:bit has the printable characters of ASCII (32 to 126).
  private func warn(of value: String, for property: String, _ target: Target) {
    guard target.profile == Profile.microbit.name, property == "led_text" else { return }
    let blank = value.unicodeScalars.filter { !(0x20...0x7E).contains($0.value) }
    guard !blank.isEmpty else { return }
    let shown = String(String.UnicodeScalarView(blank))
    printError(
      "the micro:bit cannot show \(Excerpt(shown)), which stays blank: it has letters without accents only")
  }

  @LoopActor private func request(
    _ verb: String, _ keys: JSONValue, _ target: Target, _ access: GatewayAccess
  ) async throws(CommandFailure) -> JSONValue {
    let id: JSONValue = ["id": target.id.map(JSONValue.string)]
    return try await access.request(verb, id.merging(keys), within: timeout + .seconds(40))
  }

  @LoopActor private func report(_ data: JSONValue, _ property: String) throws(CommandFailure) {
    let status = data["status"]?.text ?? ""
    let actual = data["actual"]?.shown(unit: data["unit"]) ?? ""
    let text: String? =
      switch status {
      case "read": actual
      case "applied": "applied: \(actual)"
      case "adjusted":
        "adjusted: it holds \(actual), not \(data["requested"]?.shown(unit: data["unit"]) ?? "")"
      case "accepted", "sent": status
      default: nil
      }
    if let shown = json ? data.written : text { printOutput(shown) }
    guard text == nil else { return }
    let exit: GatewayCommand.ExitStatus =
      switch status {
      case "rejected": .usage
      case "timeout": .unavailable
      default: .refused
      }
    let reason = data["reason"]?.shown ?? "another command has replaced it"
    throw CommandFailure(exit, "\(property): \(reason)")
  }
}

/// Why a command has failed, for the user, and the exit status.
struct CommandFailure: Error, Equatable {
  let status: GatewayCommand.ExitStatus
  let text: String

  init(_ status: GatewayCommand.ExitStatus, _ text: String) {
    self.status = status
    self.text = text
  }
}
