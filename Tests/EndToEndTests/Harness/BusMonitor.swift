import TestSupport

/// Records the method calls on a bus, by dbus-monitor.
final class BusMonitor: Sendable {
  private let bus: PrivateBus
  private let process: ChildProcess

  /// Returns when it sees all method calls.
  init(_ bus: PrivateBus) async throws {
    self.bus = bus
    process = try ChildProcess(
      "/usr/bin/dbus-monitor", ["--address", bus.address, "--profile", "type='method_call'"])
    // dbus-monitor loses its unique name when it becomes a monitor.
    _ = try await process.line(within: Fixture.patience) { $0.contains("NameLost") }
  }

  /// Waits for a call of `member`.
  func called(_ member: String) async throws {
    _ = try await process.line(within: Fixture.patience) { Self.isCall($0, of: member) }
  }

  /// The number of calls of `member` so far. The next ``called(_:)`` waits for a later one.
  func calls(of member: String) async throws -> Int {
    try await calls(of: [member]).count
  }

  /// The calls of `members` so far, in order.
  func calls(of members: [String]) async throws -> [String] {
    // dbus-monitor may lag behind. It has shown all earlier calls once it shows this one, which the bus itself
    // refuses.
    let fence = "Fence\(UInt32.random(in: 0 ... .max))"
    let caller = try ChildProcess(
      "/usr/bin/dbus-send",
      ["--bus=" + bus.address, "--print-reply", "--dest=org.freedesktop.DBus", "/", "microbit.Test." + fence])
    try await caller.exitStatus(within: Fixture.patience)
    try await called(fence)
    return process.text.split(separator: "\n").compactMap { line in
      members.first { Self.isCall(line, of: $0) }
    }
  }

  /// A line of the profile format ends with path, interface and member.
  private static func isCall(_ line: some StringProtocol, of member: String) -> Bool {
    line.hasPrefix("mc\t") && line.hasSuffix("\t" + member)
  }
}
