import Configuration
import Devices
import EventLoop
import GATT
import Glibc
import JSON

/// A command that asks the running gateway.
@LoopActor struct DeviceCommand {
  let values: Arguments.Values
  let access: GatewayAccess

  /// What the user calls the device.
  private var name: String { values.words.first ?? "" }
  var json: Bool { values.has(.json) }
  private var device: Target { get async throws(CommandFailure) { try await access.device(name) } }

  /// `inspect`, which works without a gateway too.
  static func inspect(_ values: Arguments.Values) async throws(CommandFailure) {
    let name = values.words[0]
    let data: JSONValue
    if let access = try GatewayAccess.open(values) {
      defer { access.close() }
      let target = try await access.find(name, orInRange: true)
      data = try await access.request(
        "device/inspect", target.selector, within: DeviceManager.inspectionLimit)
    } else {
      data = try await LocalEngine.inspect(name, values[.config], values.patience)
    }
    if values.has(.json) { printOutput(data.text()) } else { printOutput(InspectionText(data)) }
  }

  func read() async throws(CommandFailure) {
    let target = try await device
    if let reason = try await access.offline(target) { throw CommandFailure(.unavailable, reason) }
    try report(try await request("property/get", ["property": .string(values.words[1])], target))
  }

  func write() async throws(CommandFailure) {
    let target = try await device
    let (property, value) = (values.words[1], values.words[2])
    let seconds = Int(values.patience.components.seconds)
    if let reason = try await access.offline(target) {
      printError("\(reason); waiting up to \(seconds) s …")
    }
    warn(of: value, for: property, target)
    let keys: JSONValue = [
      "property": .string(property), "value": .string(value), "ttl": .integer(seconds),
    ]
    try report(try await request("property/set", keys, target))
  }

  func watch() async throws(CommandFailure) {
    let format: Watching.Format = values.has(.csv) ? .csv : json ? .json : .text
    try await Watching(access, property: values.word(1), format: format).run(values.word(0))
  }

  func pair() async throws(CommandFailure) {
    try await access.pair(try await access.find(name, orInRange: true), passkey: values.passkey)
  }

  func unpair() async throws(CommandFailure) {
    let target = try await access.find(name, orInRange: false)
    _ = try await access.request("device/unpair", target.selector, within: .seconds(30))
    printOutput("\(target.label) \(target.isPaired ? "is no longer" : "was not") paired")
  }

  func identify() async throws(CommandFailure) {
    let target = try await device
    let data = try await request("device/identify", [:], target)
    printOutput("\(target.label) " + (data["value"].map { "shows \($0.shown)" } ?? "blinks"))
  }

  func log() async throws(CommandFailure) {
    let (target, raw) = (try await device, values.has(.raw))
    let keys = target.selector.merging(["raw": .bool(raw)])
    // A full log takes minutes.
    let data = try await access.request("device/log", keys, within: .seconds(7200))
    let csv = data["csv"]?.text ?? ""
    // What a program logs could control the terminal; the table is harmless.
    let isShown = raw && isatty(STDOUT_FILENO) != 0
    printOutput(isShown ? Excerpt.harmless(csv, keeping: "\n") : csv, terminator: "")
  }

  func list() async throws(CommandFailure) {
    let devices = try await access.request("devices")
    if json { return printOutput(devices.text()) }
    let lines = DeviceList(devices, gateway: access.gateway).lines
    if lines.isEmpty {
      let options = values[.config].map { " --config \($0.shellWord)" } ?? ""
      printError("the gateway \(access.gateway) knows no device yet: microbit-gateway scan\(options)")
    }
    for line in lines { printOutput(line) }
  }

  func bonds() async throws(CommandFailure) {
    let paired = try await access.request("devices").elements.compactMap { Target($0) }.filter(\.isPaired)
    if paired.isEmpty { printError("no device is paired") }
    for target in paired { printOutput(target) }
  }

  func add() async throws(CommandFailure) {
    let (target, label) = (try await access.find(name, orInRange: true), values.word(1))
    let device = try await access.request(
      "device/add",
      [
        "identifier": .string(target.address.description), "name": label.map(JSONValue.string),
        "id": label.flatMap { TopicWord.similar(to: $0) }.map(JSONValue.string),
        "area": values.word(2).map(JSONValue.string),
      ])
    printOutput("\(target.address) is added as \(device["id"]?.shown ?? "")")
  }

  /// The name, and the id that follows from it, as in `init`.
  func rename() async throws(CommandFailure) {
    let (target, label) = (try await device, values.words[1])
    let keys = target.selector.merging(["name": .string(label)])
    let data = try await access.request("device/rename", keys)
    printOutput("\(target.label) is now \(Excerpt(label)), in topics \(data["to"]?.shown ?? "")")
  }

  func remove() async throws(CommandFailure) {
    let target = try await device
    _ = try await access.request("device/remove", target.selector)
    printOutput("\(target.label) is removed: add it again with \(access.command("add \(target.address)"))")
  }

  /// Adds micro:bits in range, for so many seconds; without a number, the gateway's default.
  func permitJoin() async throws(CommandFailure) {
    let data = try await access.request("permit_join", ["time": values.seconds.map(JSONValue.integer)])
    let time = data["time"]?.integer ?? 0
    printOutput(
      time == 0
        ? "no more micro:bits are added"
        : "micro:bits in range in the next \(time) s are added: \(access.command("devices")) lists them"
    )
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

  private func request(
    _ verb: String, _ keys: JSONValue, _ target: Target
  ) async throws(CommandFailure) -> JSONValue {
    try await access.request(verb, target.selector.merging(keys), within: values.patience + .seconds(40))
  }

  private func report(_ data: JSONValue) throws(CommandFailure) {
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
    throw CommandFailure(exit, "\(values.words[1]): \(reason)")
  }
}

/// Why a command has failed, for the user, and the exit status.
struct CommandFailure: Error, Equatable {
  let status: GatewayCommand.ExitStatus
  /// Empty: it was printed already.
  let text: String

  init(_ status: GatewayCommand.ExitStatus, _ text: String = "") {
    self.status = status
    self.text = text
  }
}
