import DBus
import GATT
import JSON
import Peripherals
import Glibc
import TestSupport
import Testing

@testable import BlueZSimulator

/// The simulator on a real dbus-daemon, with a real client.
@Suite final class ServedTests: Sendable {
  private static let adapter = "org.bluez.Adapter1"
  private static let device = "org.bluez.Device1"
  private static let characteristic = "org.bluez.GattCharacteristic1"

  /// One micro:bit, quick in all it does.
  private func options(_ change: (inout SimulatorOptions) -> Void = { _ in }) -> SimulatorOptions {
    var options = SimulatorOptions()
    options.devices = 1
    options.period = 20
    options.timing.connect = .milliseconds(20)
    options.timing.disconnect = .milliseconds(20)
    options.timing.advertising = .milliseconds(5)
    change(&options)
    return options
  }

  /// Finds the micro:bit and connects to it.
  private func link(_ client: BusClient) async throws {
    _ = try await client.call(LinkTests.adapter, Self.adapter, "StartDiscovery")
    _ = try await client.signal("the micro:bit") { $0.member == "InterfacesAdded" }
    _ = try await client.call(LinkTests.adapter, Self.adapter, "StopDiscovery")
    _ = try await client.call(LinkTests.device, Self.device, "Connect")
    try await client.change(of: LinkTests.device, "ServicesResolved", to: .boolean(true))
  }

  /// The number of calls received.
  private func calls(of simulator: Simulator) async throws -> Int {
    try #require(await simulator.control(ControlRequest(op: .counters))["calls"]?.integer)
  }

  @Test func aWholeSession() async throws {
    let bus = try await PrivateBus()
    let simulator = try await Simulator.start(options(), address: bus.address)
    let client = try await BusClient(bus)
    try await link(client)

    let objects = try await client.call("/", DBusName.objectManager, "GetManagedObjects")
    #expect(objects.first?.map?[LinkTests.temperature]?.map?[Self.characteristic] != nil)

    let reply = try await client.call(
      LinkTests.temperature, Self.characteristic, "AcquireNotify", [.properties([:])])
    guard case .fileDescriptor(let socket)? = reply.first, socket.raw >= 0 else {
      throw Failure("no descriptor")
    }
    #expect(reply.last == .uint16(23))
    for _ in 0..<5 { #expect(try await packet(from: socket)?.count == 1) }

    let period: [DBusValue] = [.bytes([0x0A, 0]), .properties(["type": .string("request")])]
    _ = try await client.call(LinkTests.period, Self.characteristic, "WriteValue", period)
    let back = try await client.call(LinkTests.period, Self.characteristic, "ReadValue", [.properties([:])])
    #expect(back == [.bytes([0x0A, 0])])

    // The micro:bit hangs up: the signal, and the socket's end after what was still in it.
    #expect(await simulator.control(ControlRequest(op: .disconnect))["connected"] == .bool(false))
    try await client.change(of: LinkTests.device, "Connected", to: .boolean(false))
    try await client.change(of: LinkTests.temperature, "NotifyAcquired", to: .boolean(false))
    while try await packet(from: socket) != nil {}
    await simulator.stop()
    try await simulator.run()
  }

  /// The trace counts on: after 256 notifications their values, and so their signals, recur.
  @Test func signalsOfNotificationsAreTracedAsOftenAsTheyCome() async throws {
    let folder = try TemporaryFolder()
    let bus = try await PrivateBus()
    let traced = options {
      $0.period = 1
      $0.trace = folder.path + "/trace"
    }
    let simulator = try await Simulator.start(traced, address: bus.address)
    let client = try await BusClient(bus)
    try await link(client)
    _ = try await client.call(LinkTests.temperature, Self.characteristic, "StartNotify")
    var last: UInt8?
    for _ in 0..<600 {
      let signal = try await client.signal("a value") {
        $0.path == LinkTests.temperature && $0.arguments[1].map?["Value"] != nil
      }
      let value = try #require(signal.arguments[1].map?["Value"]?.byteArray?.first)
      if let last { #expect(value == last &+ 1) }
      last = value
    }
    await simulator.stop()

    let file = try #require(fopen(folder.path + "/trace", "r"))
    defer { fclose(file) }
    var words = [UInt64](repeating: 0, count: 1 + 256)
    #expect(fread(&words, 8, words.count, file) == words.count)
    #expect(words[0] >= 600)
    #expect(!words[1...].contains(0))
  }

  /// Two buttons that notify the same bytes, and a text that is written: by the control channel and by the bus.
  @Test func valuesComeFromTheCharacteristicThatTheyAreSetOn() async throws {
    let bus = try await PrivateBus()
    let simulator = try await Simulator.start(
      options { $0.services = [.buttons, .led] }, address: bus.address)
    let client = try await BusClient(bus)
    try await link(client)
    let buttons = ["char0016", "char0019"].map { LinkTests.device + "/service0015/" + $0 }
    for button in buttons { _ = try await client.call(button, Self.characteristic, "StartNotify") }
    let uuids = ["da90", "da91"].map { "e95d\($0)-251d-470a-a062-fa1922dfa9a8" }
    for value in ["01", "00", "01"] {
      for (button, uuid) in zip(buttons, uuids) {
        var request = ControlRequest(op: .value, bytes: Hexadecimal.bytes(value))
        request.characteristic = BluetoothUUID(uuid)
        let state = await simulator.control(request)
        #expect(state["notifying"] == .bool(true))
        #expect(state["subscribed"] == .array(uuids.map { .string($0) }))
        let signal = try await client.signal("a value") { $0.arguments[1].map?["Value"] != nil }
        #expect(signal.path == button)
        #expect(signal.arguments[1].map?["Value"]?.byteArray == [value == "01" ? 1 : 0])
      }
    }
    _ = try await client.call(
      LinkTests.device + "/service001c/char001f", Self.characteristic, "WriteValue",
      [.bytes(Array("Hi".utf8)), .properties([:])])
    var request = ControlRequest(op: .writes)
    request.characteristic = BluetoothUUID("e95d93ee-251d-470a-a062-fa1922dfa9a8")
    let answer = await simulator.control(request).bytes
    #expect(String(decoding: answer, as: UTF8.self) == #"{"count":1,"writes":["4869"]}"#)
    await simulator.stop()
  }

  @Test func aSocketThatIsClosedIsReleased() async throws {
    let bus = try await PrivateBus()
    let simulator = try await Simulator.start(options(), address: bus.address)
    let client = try await BusClient(bus)
    try await link(client)
    for _ in 0..<3 {
      var reply = try await client.call(
        LinkTests.temperature, Self.characteristic, "AcquireNotify", [.properties([:])])
      try await client.change(of: LinkTests.temperature, "NotifyAcquired", to: .boolean(true))
      await #expect(
        throws: DBusError.remote(name: "org.bluez.Error.NotPermitted", message: "Notify acquired")
      ) {
        _ = try await client.call(
          LinkTests.temperature, Self.characteristic, "AcquireNotify", [.properties([:])])
      }
      // The last reference to the descriptor is released: it is closed.
      reply.removeAll()
      try await client.change(of: LinkTests.temperature, "NotifyAcquired", to: .boolean(false))
    }
    await simulator.stop()
  }

  @Test func clientsDiscoveryAndNotificationsEndWithItsConnection() async throws {
    let bus = try await PrivateBus()
    let simulator = try await Simulator.start(options(), address: bus.address)
    let client = try await BusClient(bus)
    try await link(client)
    let other = try await BusClient(bus)
    _ = try await other.call(LinkTests.adapter, Self.adapter, "StartDiscovery")
    _ = try await other.call(LinkTests.temperature, Self.characteristic, "StartNotify")
    try await client.change(of: LinkTests.temperature, "Notifying", to: .boolean(true))
    await other.connection.close()
    try await client.change(of: LinkTests.adapter, "Discovering", to: .boolean(false))
    try await client.change(of: LinkTests.temperature, "Notifying", to: .boolean(false))
    await simulator.stop()
  }

  @Test(arguments: [ControlRequest.Ending.term, .kill])
  func bluetoothdEndsAndStartsAgain(_ how: ControlRequest.Ending) async throws {
    let bus = try await PrivateBus()
    let slow = options { $0.timing.attribute = .seconds(60) }
    let simulator = try await Simulator.start(slow, address: bus.address)
    let client = try await BusClient(bus)
    try await link(client)
    let calls = try await calls(of: simulator)
    let pending = Task {
      try await client.call(LinkTests.period, Self.characteristic, "ReadValue", [.properties([:])])
    }
    try await eventually("a call that is under way") { try await self.calls(of: simulator) != calls }
    #expect(await simulator.control(ControlRequest(op: .restart, how: how, ms: 10)) == .done)
    let first = try await client.signal("something") { _ in true }
    switch how {
    case .term:
      #expect(first.member == "PropertiesChanged")
      _ = try await client.signal("the end of the adapter") {
        $0.member == "InterfacesRemoved" && $0.arguments[0].text == LinkTests.adapter
      }
      await #expect(
        throws: DBusError.remote(
          name: "org.bluez.Error.Failed", message: "Operation failed with ATT error: 0x0e")
      ) { _ = try await pending.value }
    case .kill:
      #expect(first.member == "NameOwnerChanged")
      await #expect { _ = try await pending.value } throws: { error in
        (error as? DBusError)?.name == "org.freedesktop.DBus.Error.NoReply"
      }
    }
    _ = try await client.signal("the new bluetoothd") {
      $0.member == "NameOwnerChanged" && $0.arguments[2].text != ""
    }
    _ = try await client.signal("the device, from the storage") {
      $0.member == "InterfacesAdded" && $0.arguments[0].text == LinkTests.device
    }
    if how == .kill { try await client.change(of: LinkTests.device, "Connected", to: .boolean(false)) }
    try await link(again: client)
    await simulator.stop()
  }

  private func link(again client: BusClient) async throws {
    _ = try await client.call(LinkTests.device, Self.device, "Connect")
    try await client.change(of: LinkTests.device, "ServicesResolved", to: .boolean(true))
  }

  @Test func theNameCanBeHadOnce() async throws {
    let bus = try await PrivateBus()
    let simulator = try await Simulator.start(options(), address: bus.address)
    let error = PeripheralError("org.bluez is already owned by another program on \(bus.address)")
    await #expect(throws: error) {
      _ = try await Simulator.start(options(), address: bus.address)
    }
    await simulator.stop()
  }

  @Test func theEndOfTheBusEndsTheRun() async throws {
    let bus = try await PrivateBus()
    let simulator = try await Simulator.start(options(), address: bus.address)
    bus.kill()
    await #expect(throws: PeripheralError("the bus has ended")) {
      try await deadline(patience, "the end of the run") { try await simulator.run() }
    }
    await #expect(throws: PeripheralError.self) {
      _ = try await Simulator.start(options(), address: bus.address)
    }
  }
}
