import DBus
import EventLoop
import TestSupport
import Testing

@testable import BlueZSimulator

/// Writes of the client configuration that fail, as proved on real bluetoothds 5.66 and 5.82: StartNotify says so
/// and leaves nothing, AcquireNotify never answers and leaves the notifications acquired.
@Suite struct SubscriptionFaultTests {
  private static let acquire = "org.bluez.GattCharacteristic1.AcquireNotify"
  private static let start = "org.bluez.GattCharacteristic1.StartNotify"
  private static let stop = "org.bluez.GattCharacteristic1.StopNotify"
  private static let read = "org.bluez.GattCharacteristic1.ReadValue"
  private static let none: DBusValue = .properties([:])

  private static let faults: [SubscriptionFault.Kind] = [.drop, .error(0x0E), .silence(.seconds(3))]

  private static func refusal(of member: String) -> String {
    "<\tA\t\(member)\torg.bluez.Error.NotPermitted\tNotify acquired"
  }

  /// A world whose first micro:bit has a link and fails the next write of its client configuration.
  private static func world(_ fault: SubscriptionFault.Kind, attribute: Duration = .zero) -> World {
    let world = LinkTests.linked { options in
      options.devices = 1
      options.timing.attribute = attribute
    }
    world.model.peripherals[0].subscriptionFault = SubscriptionFault(kind: fault, count: 1)
    return world
  }

  /// A link once more.
  private static func link(_ world: World) {
    world.call("A", LinkTests.device, "org.bluez.Device1.Connect")
    world.advance(by: .seconds(1))
    _ = world.takeLines()
  }

  /// Calls AcquireNotify and lets it fail.
  private static func fail(_ world: World) {
    world.call("A", LinkTests.temperature, acquire, [none])
    world.advance(by: .seconds(60))
  }

  private func property(_ name: String, in world: World) -> DBusValue? {
    world.model.tree.value(LinkTests.temperature, BlueZName.characteristic, name)
  }

  @Test(arguments: faults, [.zero, .milliseconds(20)] as [Duration])
  func acquireNotifyIsNeverAnsweredAndNotificationsStayAcquired(
    _ fault: SubscriptionFault.Kind, _ attribute: Duration
  ) {
    let world = Self.world(fault, attribute: attribute)
    Self.fail(world)
    #expect(!world.takeLines().contains { $0.contains("AcquireNotify") || $0.contains("NotifyAcquired") })
    #expect(world.unanswered == 0)
    #expect(world.model.isStuck(0))
    // It is true although it was not signalled.
    #expect(property("NotifyAcquired", in: world) == .boolean(true))
    #expect(property("Notifying", in: world) == .boolean(false))
    // Not on the next link either, nor after the adapter was off.
    for _ in 0..<2 {
      Self.link(world)
      world.call("A", LinkTests.temperature, Self.acquire, [Self.none])
      world.call("A", LinkTests.temperature, Self.start)
      #expect(world.takeLines() == [Self.refusal(of: "AcquireNotify"), Self.refusal(of: "StartNotify")])
      world.call("A", LinkTests.temperature, Self.read, [Self.none])
      world.advance(by: .seconds(1))
      #expect(world.takeLines().last?.hasPrefix("<\tA\tReadValue\tok") == true)
      world.take(world.model.power(false, at: world.now))
      world.take(world.model.power(true, at: world.now))
    }
  }

  @Test(arguments: [true, false])
  func takingTheSocketAwayIsTheEndOfBluetoothdAndItsRestartHeals(_ stops: Bool) {
    let world = Self.world(.drop)
    Self.fail(world)
    Self.link(world)
    if stops {
      world.call("A", LinkTests.temperature, Self.stop)
    } else {
      let remove = "org.bluez.Adapter1.RemoveDevice"
      world.call("A", LinkTests.adapter, remove, [.objectPath(LinkTests.device)])
    }
    #expect(world.takeLines() == ["crash"])
    world.take(world.model.restart(at: world.now))
    world.advance(by: .seconds(1))
    Self.link(world)
    world.call("A", LinkTests.temperature, Self.acquire, [Self.none])
    #expect(world.takeLines().last == "<\tA\tAcquireNotify\tok")
  }

  @Test(arguments: faults, [.zero, .milliseconds(20)] as [Duration])
  func startNotifySaysSoAndLeavesNothing(_ fault: SubscriptionFault.Kind, _ attribute: Duration) {
    let world = Self.world(fault, attribute: attribute)
    world.call("A", LinkTests.temperature, Self.start)
    world.advance(by: .seconds(60))
    let failure = "<\tA\tStartNotify\torg.bluez.Error.Failed\tOperation failed with ATT error: 0x0e"
    #expect(world.takeLines().last == failure)
    #expect(property("Notifying", in: world) == .boolean(false))
    #expect(property("NotifyAcquired", in: world) == .boolean(false))
    Self.link(world)
    world.call("A", LinkTests.temperature, Self.start)
    world.advance(by: .seconds(3))
    let lines = world.takeLines()
    #expect(lines.contains("<\tA\tStartNotify\tok"))
    #expect(lines.filter { $0.contains("{Value=ay:") }.count >= 2)
  }

  @Test func theFirstOnesMaySucceed() {
    let world = LinkTests.linked()
    world.model.peripherals[0].subscriptionFault = SubscriptionFault(kind: .drop, skip: 1, count: 1)
    world.call("A", LinkTests.temperature, Self.start)
    world.call("A", LinkTests.temperature, Self.stop)
    #expect(world.takeLines().last == "<\tA\tStopNotify\tok")
    world.call("A", LinkTests.temperature, Self.acquire, [Self.none])
    #expect(world.takeLines().last == LinkTests.lost)
    #expect(world.model.isStuck(0))
  }

  @Test func theErrorIsTheOneThatWasAskedFor() {
    let world = Self.world(.error(0x05))
    world.call("A", LinkTests.temperature, Self.start)
    #expect(world.takeLines() == ["<\tA\tStartNotify\torg.bluez.Error.NotPermitted\tNot paired"])
  }

  @Test func withoutAnAnswerNothingElseOnTheLinkIsAnsweredEither() {
    let world = Self.world(.silence(.seconds(3)))
    world.call("A", LinkTests.temperature, Self.start)
    world.call("B", LinkTests.temperature, Self.start)
    world.call("A", LinkTests.period, Self.read, [Self.none])
    world.advance(by: .milliseconds(2999))
    #expect(world.takeLines() == [])
    world.advance(by: .milliseconds(1))
    let failure = "\torg.bluez.Error.Failed\tOperation failed with ATT error: 0x0e"
    #expect(
      world.takeLines() == [
        LinkTests.lost, "<\tA\tStartNotify" + failure, "<\tB\tStartNotify" + failure,
        "<\tA\tReadValue" + failure,
      ])
  }

  @Test func aClientThatSubscribedBeforeLosesItsSubscriptionWhenBluetoothdFailsToRenewIt() {
    let world = LinkTests.linked()
    world.call("A", LinkTests.temperature, Self.start)
    world.take(world.model.hangUp(0, at: world.now))
    world.model.peripherals[0].subscriptionFault = SubscriptionFault(kind: .error(0x0E), count: 1)
    Self.link(world)
    world.advance(by: .seconds(5))
    #expect(world.takeLines() == [])
    #expect(property("Notifying", in: world) == .boolean(true))
    world.call("A", LinkTests.temperature, Self.start)
    world.advance(by: .seconds(2))
    let lines = world.takeLines()
    #expect(lines.first == "<\tA\tStartNotify\tok")
    #expect(lines.count >= 2)
  }

  @Test func aClientThatLeavesWhileItAcquiresLeavesTheSocketBehind() {
    let world = LinkTests.linked { options in
      options.devices = 1
      options.timing.attribute = .milliseconds(20)
    }
    world.call("C", LinkTests.temperature, Self.acquire, [Self.none])
    world.take(world.model.clientLeft("C", at: world.now))
    world.advance(by: .seconds(1))
    world.call("B", LinkTests.temperature, Self.start)
    #expect(world.takeLines() == ["<\tB\tStartNotify\torg.bluez.Error.NotPermitted\tNotify acquired"])
  }

  @Test func theSocketFollowsOnceTheSameClientHasStopped() {
    let world = LinkTests.linked()
    world.call("A", LinkTests.temperature, Self.start)
    world.call("A", LinkTests.temperature, Self.acquire, [Self.none])
    #expect(world.takeLines().last == "<\tA\tAcquireNotify\torg.bluez.Error.InProgress\tIn Progress")
    world.call("A", LinkTests.temperature, Self.stop)
    world.call("A", LinkTests.temperature, Self.acquire, [Self.none])
    #expect(world.takeLines().last == "<\tA\tAcquireNotify\tok")
    // StopNotify by any caller then closes it.
    world.call("B", LinkTests.temperature, Self.stop)
    #expect(world.channels == [])
    #expect(
      world.takeLines() == [
        "!\t\(LinkTests.temperature)\tPropertiesChanged\torg.bluez.GattCharacteristic1\t{NotifyAcquired=b:false}\t",
        "<\tB\tStopNotify\tok",
      ])
  }

  @Test func aValueThatIsReadIsToldBeforeItIsAnswered() {
    let world = LinkTests.linked()
    world.model.peripherals[0].microBit?.fixedTemperature = 20
    world.model.peripherals[0].silent = true
    world.call("A", LinkTests.temperature, Self.start)
    _ = world.takeLines()
    world.call("B", LinkTests.temperature, Self.read, [Self.none])
    #expect(
      world.takeLines() == [
        "!\t\(LinkTests.temperature)\tPropertiesChanged\torg.bluez.GattCharacteristic1\t{Value=ay:14}\t",
        "<\tB\tReadValue\tok\tay:14",
      ])
  }

  @Test func aMicroBitThatDemandsPairingAnswersNothingAndItsDeviceGoes() {
    let world = LinkTests.linked()
    world.model.peripherals[0].demandsPairing = true
    // What it is can be read by anybody.
    world.call("A", LinkTests.device + "/service000e/char000f", Self.read, [Self.none])
    #expect(world.takeLines().last?.hasPrefix("<\tA\tReadValue\tok") == true)
    world.call("A", LinkTests.temperature, Self.read, [Self.none])
    world.call("A", LinkTests.temperature, Self.start)
    world.advance(by: .milliseconds(29_999))
    #expect(world.takeLines() == [])
    world.advance(by: .milliseconds(1))
    let lines = world.takeLines()
    #expect(lines.allSatisfy { $0.contains("InterfacesRemoved") })
    #expect(lines.last?.hasPrefix("!\t\(LinkTests.device)\t") == true)
    #expect(world.unanswered == 0)
    // It is found again.
    world.call("A", LinkTests.adapter, "org.bluez.Adapter1.StartDiscovery")
    world.advance(by: .seconds(1))
    #expect(world.takeLines().last?.contains("InterfacesAdded") == true)
  }
}

/// The same by the control channel.
@Suite final class SubscriptionFaultControlTests: Sendable {
  private let loop = EventLoop.onNewThread()
  deinit { loop.stop() }

  private func simulator(on bus: PrivateBus) async throws -> Simulator {
    var options = SimulatorOptions()
    options.timing.connect = .milliseconds(20)
    options.timing.advertising = .milliseconds(5)
    return try await Simulator.start(options, address: bus.address, on: loop)
  }

  private func carryOut(_ line: String, by simulator: Simulator) async throws -> String {
    let request = try ControlRequest.parse(Array(line.utf8)).get()
    return String(decoding: await simulator.control(request).line, as: UTF8.self)
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
    #expect(nobody == "{\"error\":\"no device 7\"}\n")
    await simulator.stop()
  }

  @Test func aStopNotifyThatCrashesBluetoothdTakesItsNameOffTheBusForAWhile() async throws {
    let bus = try await PrivateBus()
    let simulator = try await simulator(on: bus)
    let client = try await BusClient(bus, on: loop)
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
    #expect(try await carryOut(#"{"op":"list"}"#, by: simulator).contains(#""stuck":true"#))
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
