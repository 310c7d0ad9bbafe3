import DBus
import EventLoop
import Glibc
import TestSupport

/// A client on a real bus: calls, and the signals that came, to be waited for in their order.
final class BusClient: Sendable {
  let connection: DBusConnection
  private let log: Record<DBusSignal>

  init(_ bus: PrivateBus) async throws {
    let log = Record<DBusSignal>()
    self.log = log
    connection = try await DBusConnection.open(bus.address) { event in
      if case .signal(let signal) = event { log.append(signal) }
    }
    try await connection.addMatch(["sender": "org.bluez"])
    try await connection.addMatch(
      ["sender": DBusName.bus, "member": "NameOwnerChanged", "arg0": "org.bluez"])
  }

  func call(_ path: String, _ interface: String, _ member: String, _ arguments: [DBusValue] = [])
    async throws -> [DBusValue]
  {
    try await connection.call(
      DBusCall(member, on: interface, of: path, at: "org.bluez", arguments), timeout: patience)
  }

  /// The next signal not looked at yet that satisfies `condition`; those before it are passed over.
  func signal(
    _ what: String, where condition: @escaping @Sendable (DBusSignal) -> Bool
  ) async throws -> DBusSignal {
    try await log.next(what) { condition($0) ? $0 : nil }
  }

  /// Waits for the signal that a property has this value.
  func change(of path: String, _ name: String, to value: DBusValue) async throws {
    _ = try await signal("\(name) of \(path)") { signal in
      signal.path == path && signal.member == "PropertiesChanged" && signal.arguments[1].map?[name] == value
    }
  }
}

/// The next packet of a notification socket; nil at its end.
func packet(from descriptor: FileDescriptor) async throws -> [UInt8]? {
  let raw = descriptor.raw
  let bytes = await EventLoop.blocking { () -> [UInt8]? in
    var wanted = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
    guard poll(&wanted, 1, Int32(patience / .milliseconds(1))) == 1 else { return nil }
    var buffer = [UInt8](repeating: 0, count: 512)
    let count = read(raw, &buffer, buffer.count)
    return count < 0 ? nil : Array(buffer[..<count])
  }
  guard let bytes else { throw Failure("no packet came: errno \(errno)") }
  return bytes.isEmpty ? nil : bytes
}

/// The answer of a control socket to a line.
func ask(_ path: String, _ line: String) async throws -> String {
  guard let answer = try await LineClient(path).request(line) else {
    throw Failure("no answer at \(path) to \(line)")
  }
  return answer
}
