import EventLoop
import Glibc
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
    let socket = socket
    let answer = await EventLoop.blocking { Result { try Self.exchange(request, over: socket) } }
    let json = try JSON.parse(try answer.get())
    if let error = json["error"] { throw Failure("\(request): \(error)") }
    return json
  }

  /// Sends a request about peripheral `index`, with further keys such as `"v":21`.
  @discardableResult
  func control(_ operation: String, _ index: Int, _ keys: String = "") async throws -> Device {
    try device(try await control(#"{"op":"\#(operation)","i":\#(index)\#(keys.isEmpty ? "" : ",")\#(keys)}"#))
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

  /// Blocks, for at most ``Fixture/patience``.
  private static func exchange(_ request: String, over path: String) throws -> [UInt8] {
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Failure("socket: errno \(errno)") }
    defer { close(descriptor) }
    var limit = timeval(tv_sec: Int(Fixture.patience.components.seconds), tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    guard withUnixAddress(path, { connect(descriptor, $0, $1) }) == 0 else {
      throw Failure("the simulator's control socket: errno \(errno)")
    }
    let line = Array(request.utf8) + [10]
    guard send(descriptor, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
      throw Failure("the simulator's control socket: errno \(errno)")
    }
    var answer: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while answer.last != 10 {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { throw Failure("the simulator does not answer \(request): errno \(errno)") }
      answer += buffer[..<count]
    }
    return answer
  }
}

/// Calls `body` with the address of a unix socket.
func withUnixAddress<T>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> T) rethrows
  -> T
{
  var address = sockaddr_un()
  address.sun_family = sa_family_t(AF_UNIX)
  precondition(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
  withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
  return try withUnsafePointer(to: &address) { pointer in
    try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      try body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
    }
  }
}

/// The path of a program of this package, in the folder of the test runner.
func program(_ name: String) throws -> String {
  var buffer = [UInt8](repeating: 0, count: 4096)
  let count = buffer.withUnsafeMutableBytes {
    readlink("/proc/self/exe", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
  }
  guard count > 0 else { throw Failure("/proc/self/exe: errno \(errno)") }
  let own = String(decoding: buffer[..<count], as: UTF8.self)
  guard let slash = own.lastIndex(of: "/") else { throw Failure("no folder: \(own)") }
  let path = own[...slash] + name
  guard access(String(path), X_OK) == 0 else { throw Failure("\(path) is not built") }
  return String(path)
}
