import TestSupport

/// A running microbit-simulator: bluetoothd with virtual micro:bits, and its control socket.
final class VirtualBlueZ: Sendable {
  /// The state of a virtual peripheral, from the control socket.
  struct Device: Sendable {
    let index: Int
    let name: String
    let address: String
    let isConnected: Bool
    /// The number of the adapter that has the link.
    let adapter: Int?
    let isNotifying: Bool
    /// In ms, as the micro:bit holds it; nil for other peripherals.
    let period: Int?
    /// Notifications so far.
    let sent: Int
    /// The number of further writes of its client configuration that will fail.
    let armed: Int
    /// bluetoothd treats its notifications as acquired although no program has them.
    let isStuck: Bool
    /// bluetoothd has a bond with it.
    let isBonded: Bool

    /// The default id that the gateway makes from the address.
    var id: String { String(address.lowercased().filter { $0 != ":" }) }
  }

  let process: ChildProcess
  private let socket: String

  /// Starts it, and waits until it is ready.
  init(bus: String, control: String, _ arguments: [String]) async throws {
    process = try ChildProcess(
      try program("microbit-simulator"), ["--bus", bus, "--control", control] + arguments)
    socket = control
    _ = try await process.line(within: Fixture.patience) { $0 == "ready" }
  }

  /// Sends a request, a JSON object on one line; returns the answer.
  @discardableResult
  func control(_ request: String) async throws -> JSON {
    guard let answer = try await LineClient(socket).request(request) else {
      throw Failure("the simulator does not answer \(request)")
    }
    let json = try JSON.parse(answer)
    if let error = json["error"] { throw Failure("\(request): \(error)") }
    return json
  }

  /// Sends a request about peripheral `index`, with further keys such as `"v":21`.
  @discardableResult
  func control(_ operation: String, _ index: Int, _ keys: String = "") async throws -> Device {
    try device(try await control(#"{"op":"\#(operation)","i":\#(index)\#(keys.isEmpty ? "" : ",")\#(keys)}"#))
  }

  /// Peripheral `index` notifies these values, in hexadecimal, one right after the other, however busy the machine is.
  func notify(_ index: Int, _ characteristic: String, _ values: [String]) async throws {
    let requests = values.map {
      #"{"op":"value","i":\#(index),"characteristic":"\#(characteristic)","hex":"\#($0)"}"#
    }
    let client = try LineClient(socket)
    client.send(requests.map { $0 + "\n" }.joined())
    for request in requests {
      let answer = try await client.line()
      guard let answer, try JSON.parse(answer)["error"] == nil else {
        throw Failure("\(request): \(answer ?? "no answer")")
      }
    }
  }

  func devices() async throws -> [Device] {
    try await control(#"{"op":"list"}"#).array?.map(device) ?? []
  }

  func device(_ index: Int) async throws -> Device { try await control("period", index) }

  /// Waits until peripheral `index` has sent `count` notifications.
  func waitUntil(_ index: Int, hasSent count: Int) async throws {
    try await waitUntil(index, "it has sent \(count)") { $0.sent >= count }
  }

  /// Polls until peripheral `index` satisfies `condition`, as the simulator sends no events.
  func waitUntil(_ index: Int, _ what: String, _ condition: (Device) -> Bool) async throws {
    let end = ContinuousClock.now + Fixture.patience
    while true {
      let device = try await device(index)
      if condition(device) { return }
      guard ContinuousClock.now < end else { throw Failure("timed out waiting until \(what): \(device)") }
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  private func device(_ json: JSON) throws -> Device {
    guard let index = json["i"]?.int, let name = json["name"]?.string, let address = json["address"]?.string,
      let isConnected = json["connected"]?.bool, let isNotifying = json["notifying"]?.bool,
      let sent = json["sent"]?.int, let armed = json["armed"]?.int, let isStuck = json["stuck"]?.bool,
      let isBonded = json["bonded"]?.bool
    else { throw Failure("not a peripheral: \(json)") }
    return Device(
      index: index, name: name, address: address, isConnected: isConnected, adapter: json["adapter"]?.int,
      isNotifying: isNotifying,
      period: json["period"]?.int, sent: sent, armed: armed, isStuck: isStuck, isBonded: isBonded)
  }
}
