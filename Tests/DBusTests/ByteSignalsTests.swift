import DBus
import EventLoop
import Synchronization
import TestSupport
import Testing

@LoopActor @Suite struct ByteSignalsTests {
  private static let interface = "org.example.Sensor"
  private let byteSignals = ByteSignals(of: "Value", on: interface)
  private let delivered = Record<String>()

  /// Sends `signals` and returns what it and the handler got of them.
  private func deliver(
    _ signals: [DBusSignal], setUp: @escaping @LoopActor (ByteSignals, Record<String>) -> Void
  ) async throws -> [String] {
    let bus = try await PrivateBus()
    let delivered = delivered
    let byteSignals = byteSignals
    let server = try await DBusConnection.open(bus.address) { _ in }
    let client = try await DBusConnection.open(bus.address, byteSignals: byteSignals) { event in
      if case .signal(let signal) = event, signal.path != DBusName.busPath {
        delivered.append("handler \(signal.path) \(signal.member)")
      }
    }
    for interface in [DBusName.properties, Self.interface] {
      try await client.addMatch(["interface": interface])
    }
    #expect(try await server.requestName("org.example.Sensor"))
    let reply = try await client.call(
      DBusCall(
        "GetNameOwner", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus,
        [.string("org.example.Sensor")]),
      timeout: patience)
    let sender = try #require(reply.first?.text)
    await loop.task {
      byteSignals.setSender(sender)
      setUp(byteSignals, delivered)
    }.value
    for signal in signals { try server.emit(signal) }
    try server.emit(DBusSignal("End", on: Self.interface, of: "/end"))
    _ = try await delivered.first(within: patience, "the last signal") { $0 == "handler /end End" }
    server.close()
    client.close()
    return delivered.elements.dropLast()
  }

  private static func changed(
    _ path: String, _ properties: [(String, DBusValue)], of interface: String = interface
  ) -> DBusSignal {
    let entries = properties.map { DBusValue.Entry(.string($0.0), .variant($0.1)) }
    return DBusSignal(
      "PropertiesChanged", on: DBusName.properties, of: path,
      [.string(interface), .dictionary(key: "s", value: "v", entries), .strings([])])
  }

  @Test func bytesGoToTheListenerOfTheirPath() async throws {
    let got = try await deliver([
      Self.changed("/a", [("Value", .bytes([1]))]),
      Self.changed("/a", [("Notifying", .boolean(true)), ("Value", .bytes([1, 2])), ("MTU", .uint16(23))]),
      Self.changed("/b", [("Value", .bytes([]))]),
      Self.changed("/c", [("Value", .bytes([3]))]),
      Self.changed("/aa", [("Value", .bytes([4]))]),
    ]) { byteSignals, delivered in
      for path in ["/a", "/b"] { byteSignals.listen(to: path) { delivered.append("\(path) \($0)") } }
    }
    #expect(got == ["/a [1]", "/a [1, 2]", "/b []"])
  }

  @Test func otherTypesThanByteArraysAreIgnored() async throws {
    let got = try await deliver([
      Self.changed("/a", [("Value", .string("1"))]),
      Self.changed("/a", [("Value", .variant(.bytes([1])))]),
      Self.changed("/a", [("Value", .strings(["1"]))]),
      Self.changed("/a", [("value", .bytes([1]))]),
      Self.changed("/a", []),
    ]) { byteSignals, delivered in
      byteSignals.listen(to: "/a") { delivered.append("/a \($0)") }
    }
    #expect(got == [])
  }

  @Test func everyOtherSignalGoesToTheHandler() async throws {
    let got = try await deliver([
      Self.changed("/a", [("Value", .bytes([1]))], of: "org.example.Other"),
      DBusSignal("PropertiesChanged", on: Self.interface, of: "/a", [.string(Self.interface)]),
      DBusSignal("PropertiesChanged", on: DBusName.properties, of: "/a", []),
      DBusSignal("PropertiesChanged", on: DBusName.properties, of: "/a", [.string(Self.interface)]),
      DBusSignal(
        "PropertiesChanged", on: DBusName.properties, of: "/a",
        [.string(Self.interface), .bytes([1]), .strings([])]),
      DBusSignal("Tick", on: Self.interface, of: "/a", [.bytes([1])]),
    ]) { byteSignals, delivered in
      byteSignals.listen(to: "/a") { delivered.append("/a \($0)") }
    }
    #expect(
      got == [
        "handler /a PropertiesChanged", "handler /a PropertiesChanged", "handler /a PropertiesChanged",
        "handler /a PropertiesChanged", "handler /a PropertiesChanged", "handler /a Tick",
      ])
  }

  @Test(arguments: [nil, ":1.999"]) func anotherSenderIsNotBelieved(_ sender: String?) async throws {
    let got = try await deliver([Self.changed("/a", [("Value", .bytes([1]))])]) { byteSignals, delivered in
      byteSignals.listen(to: "/a") { delivered.append("/a \($0)") }
      byteSignals.setSender(sender)
    }
    #expect(got == [])
  }

  @Test func aListenerMayEndAndBeReplaced() async throws {
    let got = try await deliver([
      Self.changed("/a", [("Value", .bytes([1]))]),
      Self.changed("/b", [("Value", .bytes([2]))]),
      Self.changed("/b", [("Value", .bytes([3]))]),
    ]) { byteSignals, delivered in
      byteSignals.listen(to: "/a") { _ in delivered.append("nobody") }
      byteSignals.stopListening(to: "/a")
      byteSignals.listen(to: "/b") { _ in delivered.append("nobody") }
      // It may end in its own call.
      byteSignals.listen(to: "/b") {
        delivered.append("/b \($0)")
        byteSignals.stopListening(to: "/b")
      }
    }
    #expect(got == ["/b [2]"])
  }
}
