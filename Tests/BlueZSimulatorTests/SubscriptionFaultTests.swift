import DBus
import JSON
import TestSupport
import Testing

@testable import BlueZSimulator

/// Writes of the client configuration that fail, as proved on real bluetoothds 5.66 and 5.82: StartNotify says so
/// and leaves nothing, AcquireNotify never answers and leaves the notifications acquired.
@Suite struct SubscriptionFaultTests {

  private static let faults: [LinkFault] = [.drop, .error(0x0E), .silence(.seconds(3))]

  private static func refusal(of member: String) -> String {
    "<\tA\t\(member)\torg.bluez.Error.NotPermitted\tNotify acquired"
  }

  /// A fixture whose first micro:bit has a link and fails the next write of its client configuration.
  private static func fixture(_ fault: LinkFault, attribute: Duration = .zero) -> Fixture {
    let fixture = LinkTests.linked { options in
      options.devices = 1
      options.timing.attribute = attribute
    }
    fixture.model.peripherals[0].subscriptionFault = SubscriptionFault(fault: fault, count: 1)
    return fixture
  }

  /// A link once more.
  private static func link(_ fixture: Fixture) {
    fixture.call("A", LinkTests.device, .connect)
    fixture.advance(by: .seconds(1))
    _ = fixture.takeLines()
  }

  /// Calls AcquireNotify and lets it fail.
  private static func fail(_ fixture: Fixture) {
    fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
    fixture.advance(by: .seconds(60))
  }

  private func property(_ name: String, in fixture: Fixture) -> DBusValue? {
    fixture.model.tree.value(LinkTests.temperature, BlueZName.characteristic, name)
  }

  @Test(arguments: faults, [.zero, .milliseconds(20)] as [Duration])
  func acquireNotifyIsNeverAnsweredAndNotificationsStayAcquired(
    _ fault: LinkFault, _ attribute: Duration
  ) {
    let fixture = Self.fixture(fault, attribute: attribute)
    Self.fail(fixture)
    #expect(!fixture.takeLines().contains { $0.contains("AcquireNotify") || $0.contains("NotifyAcquired") })
    #expect(fixture.unanswered == 1)
    #expect(fixture.model.isStuck(DeviceKey(adapter: 0, peripheral: 0)))
    // It is true although it was not signalled.
    #expect(property("NotifyAcquired", in: fixture) == .boolean(true))
    #expect(property("Notifying", in: fixture) == .boolean(false))
    // Not on the next link either, nor after the adapter was off.
    for _ in 0..<2 {
      Self.link(fixture)
      fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
      fixture.call("A", LinkTests.temperature, .startNotify)
      #expect(fixture.takeLines() == [Self.refusal(of: "AcquireNotify"), Self.refusal(of: "StartNotify")])
      fixture.call("A", LinkTests.temperature, .readValue, [.noOptions])
      fixture.advance(by: .seconds(1))
      #expect(fixture.takeLines().last?.hasPrefix("<\tA\tReadValue\tok") == true)
      fixture.give { $0.setPowered(0, false) }
      fixture.give { $0.setPowered(0, true) }
    }
  }

  @Test(arguments: [true, false])
  func endingAStuckSubscriptionCrashesBluetoothd(_ stops: Bool) {
    let fixture = Self.fixture(.drop)
    Self.fail(fixture)
    Self.link(fixture)
    if stops {
      fixture.call("A", LinkTests.temperature, .stopNotify)
    } else {
      let remove = "org.bluez.Adapter1.RemoveDevice"
      fixture.call("A", LinkTests.adapter, remove, [.objectPath(LinkTests.device)])
    }
    #expect(fixture.takeLines() == ["crash"])
    fixture.give { $0.restart() }
    fixture.advance(by: .seconds(1))
    Self.link(fixture)
    fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tAcquireNotify\tok")
  }

  @Test(arguments: faults, [.zero, .milliseconds(20)] as [Duration])
  func startNotifySaysSoAndLeavesNothing(_ fault: LinkFault, _ attribute: Duration) {
    let fixture = Self.fixture(fault, attribute: attribute)
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.advance(by: .seconds(60))
    let failure = "<\tA\tStartNotify\torg.bluez.Error.Failed\tOperation failed with ATT error: 0x0e"
    #expect(fixture.takeLines().last == failure)
    #expect(property("Notifying", in: fixture) == .boolean(false))
    #expect(property("NotifyAcquired", in: fixture) == .boolean(false))
    Self.link(fixture)
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.advance(by: .seconds(3))
    let lines = fixture.takeLines()
    #expect(lines.contains("<\tA\tStartNotify\tok"))
    #expect(lines.filter { $0.contains("{Value=ay:") }.count >= 2)
  }

  @Test func requestedErrorIsReturned() {
    let fixture = Self.fixture(.error(0x05))
    fixture.call("A", LinkTests.temperature, .startNotify)
    #expect(fixture.takeLines() == ["<\tA\tStartNotify\torg.bluez.Error.NotPermitted\tNot paired"])
  }

  @Test func unansweredRequestBlocksAllOthersOnTheLink() {
    let fixture = Self.fixture(.silence(.seconds(3)))
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.call("B", LinkTests.temperature, .startNotify)
    fixture.call("A", LinkTests.period, .readValue, [.noOptions])
    fixture.advance(by: .milliseconds(2999))
    #expect(fixture.takeLines() == [])
    fixture.advance(by: .milliseconds(1))
    let failure = "\torg.bluez.Error.Failed\tOperation failed with ATT error: 0x0e"
    #expect(
      fixture.takeLines() == [
        LinkTests.lost, "<\tA\tStartNotify" + failure, "<\tB\tStartNotify" + failure,
        "<\tA\tReadValue" + failure,
      ])
  }

  @Test func aClientThatSubscribedBeforeLosesItsSubscriptionWhenBluetoothdFailsToRenewIt() {
    let fixture = LinkTests.linked()
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.give { $0.hangUp($0.key(ofPeripheral: 0)) }
    fixture.model.peripherals[0].subscriptionFault = SubscriptionFault(fault: .error(0x0E), count: 1)
    Self.link(fixture)
    fixture.advance(by: .seconds(5))
    #expect(fixture.takeLines() == [])
    #expect(property("Notifying", in: fixture) == .boolean(true))
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.advance(by: .seconds(2))
    let lines = fixture.takeLines()
    #expect(lines.first == "<\tA\tStartNotify\tok")
    #expect(lines.count >= 2)
  }

  @Test func aClientThatLeavesWhileItAcquiresLeavesTheSocketBehind() {
    let fixture = LinkTests.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(20)
    }
    fixture.call("C", LinkTests.temperature, .acquireNotify, [.noOptions])
    fixture.give { $0.clientLeft("C") }
    fixture.advance(by: .seconds(1))
    fixture.call("B", LinkTests.temperature, .startNotify)
    #expect(fixture.takeLines() == ["<\tB\tStartNotify\torg.bluez.Error.NotPermitted\tNotify acquired"])
  }

  @Test func theSocketFollowsOnceTheSameClientHasStopped() {
    let fixture = LinkTests.linked()
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tAcquireNotify\torg.bluez.Error.InProgress\tIn Progress")
    fixture.call("A", LinkTests.temperature, .stopNotify)
    fixture.call("A", LinkTests.temperature, .acquireNotify, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tAcquireNotify\tok")
    // StopNotify by any caller then closes it.
    fixture.call("B", LinkTests.temperature, .stopNotify)
    #expect(fixture.channels == [])
    #expect(
      fixture.takeLines() == [
        "!\t\(LinkTests.temperature)\tPropertiesChanged\torg.bluez.GattCharacteristic1\t{NotifyAcquired=b:false}\t",
        "<\tB\tStopNotify\tok",
      ])
  }

  @Test func readValueIsSignalledBeforeTheReply() {
    let fixture = LinkTests.linked()
    fixture.model.peripherals[0].values.microBit?.fixedTemperature = 20
    fixture.model.peripherals[0].radio.isSilent = true
    fixture.call("A", LinkTests.temperature, .startNotify)
    _ = fixture.takeLines()
    fixture.call("B", LinkTests.temperature, .readValue, [.noOptions])
    #expect(
      fixture.takeLines() == [
        "!\t\(LinkTests.temperature)\tPropertiesChanged\torg.bluez.GattCharacteristic1\t{Value=ay:14}\t",
        "<\tB\tReadValue\tok\tay:14",
      ])
  }

  @Test func unpairedMicroBitThatRequiresPairingDoesNotAnswer() {
    let fixture = LinkTests.linked()
    fixture.model.peripherals[0].security.isRequired = true
    // What it is can be read by anybody.
    fixture.call("A", LinkTests.device + "/service000e/char000f", .readValue, [.noOptions])
    #expect(fixture.takeLines().last?.hasPrefix("<\tA\tReadValue\tok") == true)
    fixture.call("A", LinkTests.temperature, .readValue, [.noOptions])
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.advance(by: .milliseconds(29_999))
    #expect(fixture.takeLines() == [])
    fixture.advance(by: .milliseconds(1))
    let lines = fixture.takeLines()
    #expect(lines.allSatisfy { $0.contains("InterfacesRemoved") })
    #expect(lines.last?.hasPrefix("!\t\(LinkTests.device)\t") == true)
    #expect(fixture.unanswered == 2)
    // It is found again.
    fixture.call("A", LinkTests.adapter, .startDiscovery)
    fixture.advance(by: .seconds(1))
    #expect(fixture.takeLines().last?.contains("InterfacesAdded") == true)
  }
}

/// The same by the control channel.
@Suite final class SubscriptionFaultControlTests: Sendable {
  private func simulator(on bus: PrivateBus) async throws -> Simulator {
    var options = SimulatorOptions()
    options.timing.connect = .milliseconds(20)
    options.timing.advertising = .milliseconds(5)
    return try await Simulator.start(options, address: bus.address)
  }

  private func carryOut(_ line: String, by simulator: Simulator) async throws -> String {
    let request = try ControlRequest.parse(Array(line.utf8)).get()
    return String(decoding: await simulator.control(request).bytes, as: UTF8.self)
  }

  @Test func faultsAreArmedForOneAndForAll() async throws {
    let bus = try await PrivateBus()
    let simulator = try await simulator(on: bus)
    let one = try await carryOut(
      #"{"op":"subscription","i":1,"fault":"error","code":5,"count":2}"#, by: simulator)
    #expect(one.contains(#""armed":2"#) && one.contains(#""i":1"#) && !one.contains(#""i":0"#))
    let all = try await carryOut(#"{"op":"subscription","all":true,"fault":"silence"}"#, by: simulator)
    #expect(all.components(of: #""armed":1"#) == 3)
    let none = try await carryOut(#"{"op":"subscription","all":true,"count":0}"#, by: simulator)
    #expect(none.components(of: #""armed":0"#) == 3)
    let nobody = try await carryOut(#"{"op":"pairing","i":7}"#, by: simulator)
    #expect(nobody == "{\"error\":\"no device 7\"}")
    await simulator.stop()
  }

  @Test func aStopNotifyThatCrashesBluetoothdTakesItsNameOffTheBusForAWhile() async throws {
    let bus = try await PrivateBus()
    let simulator = try await simulator(on: bus)
    let client = try await BusClient(bus)
    _ = try await client.call(LinkTests.adapter, "org.bluez.Adapter1", "StartDiscovery")
    _ = try await client.signal("the micro:bit") {
      $0.member == "InterfacesAdded" && $0.arguments[0].text == LinkTests.device
    }
    _ = try await client.call(LinkTests.adapter, "org.bluez.Adapter1", "StopDiscovery")
    _ = try await client.call(LinkTests.device, "org.bluez.Device1", "Connect")
    try await client.change(of: LinkTests.device, "ServicesResolved", to: .boolean(true))
    _ = try await carryOut(#"{"op":"subscription","fault":"error"}"#, by: simulator)
    let characteristic = "org.bluez.GattCharacteristic1"
    await #expect(throws: DBusError.timedOut) {
      _ = try await client.connection.call(
        DBusCall(
          "AcquireNotify", on: characteristic, of: LinkTests.temperature, at: "org.bluez",
          [.properties([:])]), timeout: .milliseconds(300))
    }
    try await eventually("the notifications are stuck") {
      try await self.carryOut(#"{"op":"list"}"#, by: simulator).contains(#""stuck":true"#)
    }
    await #expect { _ = try await client.call(LinkTests.temperature, characteristic, "StopNotify") } throws: {
      ($0 as? DBusError)?.name == "org.freedesktop.DBus.Error.NoReply"
    }
    _ = try await client.signal("the end of bluetoothd") {
      $0.member == "NameOwnerChanged" && $0.arguments[2].text == ""
    }
    _ = try await client.signal("the new bluetoothd") {
      $0.member == "NameOwnerChanged" && $0.arguments[2].text != ""
    }
    #expect(try await carryOut(#"{"op":"counters"}"#, by: simulator).contains(#""crashes":1"#))
    #expect(try await !carryOut(#"{"op":"list"}"#, by: simulator).contains(#""stuck":true"#))
    await simulator.stop()
  }
}

extension String {
  /// How often `part` is in it.
  fileprivate func components(of part: String) -> Int { split(separator: part).count - 1 }
}
