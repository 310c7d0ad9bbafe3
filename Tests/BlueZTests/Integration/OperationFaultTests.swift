import DBus
import Glibc
import TestSupport
import Testing

@testable import BlueZ

/// Operations on a link that go wrong as real ones did, and worse.
@Suite struct OperationFaultTests {
  private static let unlikely = FakeBlueZ.error(
    "org.bluez.Error.Failed", "Operation failed with ATT error: 0x0e")

  @Test func aBusyCharacteristicIsTriedAgain() async throws {
    let faults = try await Faults { $0.busyRetries = 3 }
    let temperature = try #require(try await faults.connect().temperature)
    await faults.fake.answer("ReadValue") { fake, call in
      if fake.count("ReadValue") < 4 {
        fake.refuse(call, "org.bluez.Error.InProgress", "In Progress")
      } else {
        fake.reply(call, .bytes([22]))
      }
    }
    #expect(try await faults.central.read(temperature).get() == [22])
    #expect(faults.fake.count("ReadValue") == 4)
    // But not for ever.
    await faults.fake.answer("ReadValue", FakeBlueZ.error("org.bluez.Error.InProgress", "In Progress"))
    await #expect(throws: CentralError.busy("InProgress: In Progress")) {
      try await faults.central.read(temperature).get()
    }
    #expect(faults.fake.count("ReadValue") == 8)
    try await faults.tested.end()
  }

  // MARK: Read back

  @Test func aWriteIsReadBackInOneGo() async throws {
    let faults = try await Faults(answers: ["WriteValue": FakeBlueZ.never, "ReadValue": FakeBlueZ.never]) {
      $0.operation = .seconds(3600)
    }
    let characteristics = try await faults.connect()
    let writing = Task { try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) }
    // Asked for while the write is still unanswered.
    try await faults.fake.called("ReadValue")
    await faults.fake.signal(Recorded.deviceRemoved.last!)
    await #expect(throws: CentralError.disconnected) { try await writing.value }
    try await faults.tested.end()
  }

  /// What was read before the write was answered may be what another program's read brought.
  @Test func aReadBackThatIsOlderThanTheWriteIsReadOnceMore() async throws {
    let faults = try await Faults()
    let characteristics = try await faults.connect()
    let write = Record<DBusCall>()
    await faults.fake.answer("WriteValue") { _, call in write.append(call) }
    await faults.fake.answer("ReadValue") { fake, call in
      fake.reply(call, .bytes([1, 0]))
      if fake.count("ReadValue") == 1 { fake.reply(write.elements[0]) }
    }
    #expect(try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) == .success([1, 0]))
    #expect(faults.fake.count("ReadValue") == 2)
    try await faults.tested.end()
  }

  @Test(arguments: [[1, 0], [9, 9]] as [[UInt8]])
  func aReadBackOfAnotherValueIsReadOnceMore(_ second: [UInt8]) async throws {
    let faults = try await Faults(answers: ["WriteValue": { $0.reply($1) }])
    let characteristics = try await faults.connect()
    await faults.fake.answer("ReadValue") { fake, call in
      fake.reply(call, .bytes(fake.count("ReadValue") == 1 ? [7, 7] : second))
    }
    #expect(try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) == .success(second))
    #expect(faults.fake.count("ReadValue") == 2)
    try await faults.tested.end()
  }

  @Test func aWriteThatCannotBeReadBackIsAWrite() async throws {
    let faults = try await Faults(answers: ["WriteValue": { $0.reply($1) }]) {
      $0.operation = .seconds(3)
    }
    let characteristics = try await faults.connect()
    await faults.fake.answer(
      "ReadValue", FakeBlueZ.error("org.bluez.Error.NotPermitted", "Read not permitted"))
    #expect(
      try await faults.central.writeAndReadBack([1, 0], to: characteristics[1])
        == .failure(.refused("NotPermitted: Read not permitted")))
    await faults.fake.answer("ReadValue", FakeBlueZ.never)
    #expect(
      try await faults.central.writeAndReadBack([1, 0], to: characteristics[1])
        == .failure(.timedOut("ReadValue: no answer in time")))
    #expect(faults.fake.count("ReadValue") == 3)
    try await faults.tested.end()
  }

  @Test func aBusyWriteIsTriedAgainWithItsReadBack() async throws {
    let faults = try await Faults { $0.busyRetries = 1 }
    let characteristics = try await faults.connect()
    await faults.fake.answer("ReadValue") { $0.reply($1, .bytes([1, 0])) }
    await faults.fake.answer("WriteValue") { fake, call in
      if fake.count("WriteValue") < 2 {
        fake.refuse(call, "org.bluez.Error.InProgress", "In Progress")
      } else {
        fake.reply(call)
      }
    }
    #expect(try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) == .success([1, 0]))
    #expect(faults.fake.count("WriteValue") == 2 && faults.fake.count("ReadValue") == 2)
    try await faults.tested.end()
  }

  @Test(arguments: [("InProgress", "In Progress"), ("Failed", "Operation failed with ATT error: 0x0e")])
  func aReadBackThatFailsOnceIsReadOnceMore(_ error: String, _ text: String) async throws {
    let faults = try await Faults(answers: ["WriteValue": { $0.reply($1) }]) {
      $0.busyRetries = 0
      $0.linkLoss = .milliseconds(50)
    }
    let characteristics = try await faults.connect()
    await faults.fake.answer("ReadValue") { fake, call in
      if fake.count("ReadValue") < 2 {
        fake.refuse(call, "org.bluez.Error.\(error)", text)
      } else {
        fake.reply(call, .bytes([1, 0]))
      }
    }
    #expect(try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) == .success([1, 0]))
    #expect(faults.fake.count("WriteValue") == 1 && faults.fake.count("ReadValue") == 2)
    try await faults.tested.end()
  }

  @Test(arguments: [FakeBlueZ.never, unlikely])
  func linkLossBeforeTheReadBackLeavesTheOutcomeUnknown(_ answer: @escaping FakeBlueZ.Answer)
    async throws
  {
    let faults = try await Faults(answers: ["WriteValue": { $0.reply($1) }, "ReadValue": answer]) {
      $0.operation = .seconds(3600)
      $0.linkLoss = .seconds(3600)
    }
    let characteristics = try await faults.connect()
    let writing = Task { try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) }
    try await faults.fake.called("ReadValue")
    await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    try await deadline(patience, "the end of a write with its link") { () async throws -> Void in
      #expect(try await writing.value == .failure(.disconnected))
    }
    try await faults.tested.end()
  }

  /// Nor is its read-back waited for, which has another `operation`'s time.
  @Test(arguments: [true, false])
  func aWriteThatFailsEndsItsReadBack(isAnswered: Bool) async throws {
    let refused = FakeBlueZ.error("org.bluez.Error.NotPermitted", "Write not permitted")
    let faults = try await Faults(answers: [
      "WriteValue": isAnswered ? refused : FakeBlueZ.never, "ReadValue": FakeBlueZ.never,
    ]) { $0.operation = isAnswered ? .seconds(3600) : .milliseconds(300) }
    let characteristics = try await faults.connect()
    let expected: CentralError =
      isAnswered ? .refused("NotPermitted: Write not permitted") : .timedOut("WriteValue: no answer in time")
    await #expect(throws: expected) {
      try await faults.central.writeAndReadBack([1, 0], to: characteristics[1])
    }
    try await faults.tested.end()
  }

  @Test func aReadBackThatFailsFirstDoesNotFailTheWrite() async throws {
    let faults = try await Faults()
    let characteristics = try await faults.connect()
    let write = Record<DBusCall>()
    await faults.fake.answer("WriteValue") { _, call in write.append(call) }
    await faults.fake.answer("ReadValue") { fake, call in
      if fake.count("ReadValue") > 1 { return fake.reply(call, .bytes([1, 0])) }
      fake.refuse(call, "org.bluez.Error.Failed", "Failed to initiate")
      fake.reply(write.elements[0])
    }
    #expect(try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) == .success([1, 0]))
    try await faults.tested.end()
  }

  // MARK: No answer

  @Test func anOperationWithoutAnAnswerEndsByItsOwnTimeOut() async throws {
    let faults = try await Faults(answers: ["ReadValue": FakeBlueZ.never]) {
      $0.operation = .seconds(3)
    }
    let characteristics = try await faults.connect()
    await #expect(throws: CentralError.timedOut("ReadValue: no answer in time")) {
      try await faults.central.read(characteristics[0]).get()
    }
    // The lock was released.
    await faults.fake.answer("ReadValue") { $0.reply($1, .bytes([1, 0])) }
    #expect(try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) == .success([1, 0]))
    try await faults.tested.end()
  }

  @Test(arguments: [false, true])
  func anOperationWithoutAnAnswerEndsWithItsLink(forgotten: Bool) async throws {
    let faults = try await Faults(answers: ["ReadValue": FakeBlueZ.never]) { $0.operation = .seconds(3600) }
    let characteristics = try await faults.connect()
    let reading = Task { try await faults.central.read(characteristics[0]).get() }
    try await faults.fake.called("ReadValue")
    let writing = Task { try await faults.central.writeAndReadBack([1, 0], to: characteristics[1]) }
    if forgotten {
      await faults.fake.signal(Recorded.deviceRemoved.last!)
    } else {
      await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    }
    try await deadline(patience, "the end of an operation with its link") { () async throws -> Void in
      await #expect(throws: CentralError.disconnected) { try await reading.value }
      await #expect(throws: CentralError.disconnected) { try await writing.value }
    }
    if !forgotten {
      // Waiting operations are not performed on the next link.
      _ = try await faults.connect()
      #expect(faults.fake.count("WriteValue") == 0)
    }
    try await faults.tested.end()
  }

  /// bluetoothd 5.82 uses freed memory at the next read of an object whose read it never answered.
  @Test(arguments: [true, false])
  func aPeripheralWhoseReadIsNeverAnsweredIsRemovedAndFoundAgain(isEndedHere: Bool) async throws {
    let faults = try await Faults(answers: [
      "ReadValue": FakeBlueZ.never, "RemoveDevice": FakeBlueZ.removed,
    ]) {
      $0.operation = .milliseconds(50)
      $0.treeUpdate = .milliseconds(50)
    }
    let characteristics = try await faults.connect()
    await #expect(throws: CentralError.timedOut("ReadValue: no answer in time")) {
      try await faults.central.read(characteristics[0]).get()
    }
    if isEndedHere {
      await faults.central.disconnect(Recorded.id)
    } else {
      await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    }
    try await faults.fake.called("RemoveDevice")
    // Once: the next link has nothing of it.
    try await faults.tested.isOutOfRange(Recorded.id)
    await faults.fake.signal(Recorded.deviceAdded)
    _ = try await faults.tested.seen()
    _ = try await faults.connect()
    await faults.central.disconnect(Recorded.id)
    #expect(faults.fake.count("RemoveDevice") == 1)
    try await faults.tested.end()
  }

  /// Before it is removed no attempt may use it.
  @Test func aSecondDisconnectDoesNotEndTheFirst() async throws {
    let faults = try await Faults(answers: [
      "ReadValue": FakeBlueZ.never, "RemoveDevice": FakeBlueZ.removed,
    ]) {
      $0.operation = .milliseconds(50)
      $0.treeUpdate = .seconds(3600)
    }
    let characteristics = try await faults.connect()
    _ = await faults.central.read(characteristics[0])
    let first = Task { await faults.central.disconnect(Recorded.id) }
    try await faults.fake.called("Disconnect")
    await faults.fake.answer("Disconnect", FakeBlueZ.ok)
    await faults.central.disconnect(Recorded.id)
    #expect(await faults.central.isEnding(Recorded.id))
    // Ends its pause.
    first.cancel()
    await first.value
    #expect(await !faults.central.isEnding(Recorded.id))
    #expect(faults.fake.count("RemoveDevice") == 1)
    try await faults.tested.end()
  }

  /// The removal, the reply and the advertisement arrive together.
  @Test func aPeripheralThatIsFoundAgainAtOnceIsInRange() async throws {
    let faults = try await Faults(answers: [
      "RemoveDevice": { fake, call in
        for event in Recorded.deviceRemoved { fake.signal(event) }
        fake.reply(call)
        fake.signal(Recorded.deviceAdded)
        // The bus delivers meanwhile.
        usleep(100_000)
      }
    ])
    try await faults.central.unpair(Recorded.id)
    #expect(await faults.central.wait(patience) { !$0.peripherals.isEmpty })
    let isRemoved = faults.tested.events.elements.compactMap { event in
      if case .seen(let peripheral) = event { peripheral.isRemoved } else { nil }
    }
    #expect(isRemoved.last == false)
    try await faults.tested.end()
  }

  @Test func aPeripheralThatWasRemovedAndIsNotFoundAgainIsLost() async throws {
    let faults = try await Faults(answers: [
      "ReadValue": FakeBlueZ.never, "RemoveDevice": FakeBlueZ.removed,
    ]) {
      $0.operation = .milliseconds(50)
      $0.treeUpdate = .milliseconds(50)
      $0.rediscovery = .milliseconds(50)
    }
    let characteristics = try await faults.connect()
    _ = await faults.central.read(characteristics[0])
    await faults.central.disconnect(Recorded.id)
    try await faults.tested.isOutOfRange(Recorded.id)
    try await faults.tested.lost(Recorded.id)
    try await faults.tested.end()
  }

  @Test(arguments: ["answered late", "answered after its time-out", "paired", "acquired"])
  func protectedPeripheralIsNotRemoved(because reason: String) async throws {
    let faults = try await Faults(answers: ["ReadValue": FakeBlueZ.never, "RemoveDevice": FakeBlueZ.ok]) {
      $0.operation = reason == "answered late" ? .seconds(3600) : .milliseconds(50)
      $0.treeUpdate = .milliseconds(200)
    }
    let late = Record<DBusCall>()
    await faults.fake.answer("ReadValue") { _, call in late.append(call) }
    await faults.fake.answer("Disconnect") { fake, call in
      if reason.hasPrefix("answered") {
        fake.refuse(late.elements[0], "org.bluez.Error.Failed", "Operation failed with ATT error: 0x0e")
      }
      fake.reply(call)
      fake.signal(Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
    }
    let characteristics = try await faults.connect()
    if reason == "paired" { await faults.fake.signal(Recorded.device(["Paired": .boolean(true)])) }
    if reason == "acquired" { await faults.fake.answer("Get") { $0.reply($1, .variant(.boolean(true))) } }
    let reading = Task { try await faults.central.read(characteristics[0]).get() }
    try await faults.fake.called("ReadValue")
    if reason != "answered late" { _ = await reading.result }
    await faults.central.disconnect(Recorded.id)
    #expect(faults.fake.count("RemoveDevice") == 0)
    try await faults.tested.end()
  }

  @Test func error0x0eBeforeTheEndOfTheLinkIsTheEndOfTheLink() async throws {
    let faults = try await Faults { $0.linkLoss = patience }
    let temperature = try #require(try await faults.connect().temperature)
    await faults.fake.answer("ReadValue") { fake, call in
      Self.unlikely(fake, call)
      fake.later(.milliseconds(30)) {
        fake.signal(Recorded.device(["ServicesResolved": .boolean(false), "Connected": .boolean(false)]))
      }
    }
    await #expect(throws: CentralError.disconnected) { try await faults.central.read(temperature).get() }
    try await faults.tested.end()
  }

  @Test func error0x0eAloneIsAnError() async throws {
    let faults = try await Faults(answers: ["ReadValue": Self.unlikely]) { $0.linkLoss = .milliseconds(20) }
    let temperature = try #require(try await faults.connect().temperature)
    await #expect(throws: CentralError.unlikely("Failed: Operation failed with ATT error: 0x0e")) {
      try await faults.central.read(temperature).get()
    }
    try await faults.tested.end()
  }

  @Test func anAnswerOfAnotherKindIsAnError() async throws {
    let faults = try await Faults(answers: [
      "ReadValue": { fake, call in fake.reply(call, .string("21")) },
      "StartNotify": FakeBlueZ.error("org.bluez.Error.NotSupported", "Operation is not supported"),
    ])
    let temperature = try #require(try await faults.connect().temperature)
    await #expect(throws: CentralError.transient("ReadValue returned no bytes")) {
      try await faults.central.read(temperature).get()
    }
    await #expect(throws: CentralError.refused("NotSupported: Operation is not supported")) {
      try await faults.central.subscribe(to: temperature) { _ in }
    }
    try await faults.tested.end()
  }
}
