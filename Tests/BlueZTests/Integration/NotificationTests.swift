import DBus
import TestSupport
import Testing

@testable import BlueZ

/// Notifications, and what becomes of them when bluetoothd refuses.
@Suite struct NotificationTests {
  private static let acquired = FakeBlueZ.error("org.bluez.Error.NotPermitted", "Notify acquired")

  @Test func onlyTheCharacteristicAndTheLinkAreNotified() async throws {
    let faults = try await Faults()
    let temperature = try #require(try await faults.connect().temperature)
    let values = Record<[UInt8]>()
    // Before anybody listens, as the answer to a read. It has arrived when a later read is answered.
    await faults.notify([20])
    _ = try await faults.central.read(temperature).get()
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    await faults.notify([1, 0], from: Recorded.period)
    await faults.notify([21])
    await faults.notify([])
    #expect(try await values.next("a value") { $0 } == [21])
    #expect(try await values.next("an empty value") { $0 } == [])
    // Not beyond the end of the link.
    await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    try await faults.tested.disconnected(Recorded.id)
    await faults.notify([22])
    _ = try await faults.connect()
    #expect(values.elements == [[21], []])
    try await faults.tested.end()
  }

  @Test func aSubscriptionThatFailedCanBeMadeAgain() async throws {
    let faults = try await Faults(answers: [
      "StartNotify": FakeBlueZ.error("org.bluez.Error.Failed", "Operation failed with ATT error: 0x11")
    ])
    let temperature = try #require(try await faults.connect().temperature)
    let values = Record<[UInt8]>()
    await #expect(throws: CentralError.transient("Failed: Operation failed with ATT error: 0x11")) {
      try await faults.central.subscribe(to: temperature) { _ in values.append([]) }
    }
    await faults.notify([20])
    _ = try await faults.central.read(temperature).get()
    await faults.fake.answer("StartNotify", FakeBlueZ.ok)
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    await faults.notify([21])
    #expect(try await values.next("a value") { $0 } == [21])
    #expect(values.elements == [[21]])
    try await faults.tested.end()
  }

  /// Otherwise bluetoothd writes to the old handle on the next link, before it knows the services.
  @Test(arguments: [true, false])
  func theEndOfALinkEndsItsSubscriptions(isEndedHere: Bool) async throws {
    let faults = try await Faults()
    let characteristics = try await faults.connect()
    try await faults.central.subscribe(to: characteristics[0]) { _ in }
    if isEndedHere {
      await faults.central.disconnect(Recorded.id)
    } else {
      await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
      try await faults.tested.disconnected(Recorded.id)
    }
    _ = try await faults.connect()
    #expect(
      faults.fake.calls.elements.filter { $0.hasSuffix("onnect") || $0 == "StopNotify" }
        == ["Connect", "StopNotify"] + (isEndedHere ? ["Disconnect"] : []) + ["Connect"])
    // There is nothing more to end.
    await faults.central.disconnect(Recorded.id)
    #expect(faults.fake.count("StopNotify") == 1)
    try await faults.tested.end()
  }

  /// bluetoothd agrees to it without a link, too.
  @Test func aSubscriptionThatIsAnsweredAfterTheEndOfItsLinkIsEnded() async throws {
    let faults = try await Faults()
    let late = Record<DBusCall>()
    await faults.fake.answer("StartNotify") { _, call in late.append(call) }
    let characteristics = try await faults.connect()
    let subscribing = Task { try await faults.central.subscribe(to: characteristics[0]) { _ in } }
    try await faults.fake.called("StartNotify")
    await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    await #expect(throws: CentralError.disconnected) { try await subscribing.value }
    #expect(faults.fake.count("StopNotify") == 0)
    await faults.fake.reply(late.elements[0])
    try await faults.fake.called("StopNotify")
    try await faults.tested.end()
  }

  /// A second StartNotify of the same program is refused.
  @Test func aSubscriptionThatIsAnsweredAfterItsTimeIsUsedAndEnded() async throws {
    let faults = try await Faults { $0.operation = .milliseconds(300) }
    let late = Record<DBusCall>()
    await faults.fake.answer("StartNotify") { _, call in late.append(call) }
    let temperature = try #require(try await faults.connect().temperature)
    await #expect(throws: CentralError.timedOut("StartNotify: no answer in time")) {
      try await faults.central.subscribe(to: temperature) { _ in }
    }
    try await faults.fake.called("StartNotify")
    await faults.fake.reply(late.elements[0])
    await faults.fake.answer(
      "StartNotify", FakeBlueZ.error("org.bluez.Error.Failed", "Already notifying"))
    // By its answer the late one has arrived.
    _ = await faults.central.read(temperature)
    let values = Record<[UInt8]>()
    try await faults.central.subscribe(to: temperature) { values.append($0) }
    await faults.notify([22])
    #expect(try await values.next("a value") { $0 } == [22])
    await faults.central.disconnect(Recorded.id)
    #expect(faults.fake.count("StartNotify") == 1 && faults.fake.count("StopNotify") == 1)
    try await faults.tested.end()
  }

  @Test func aSubscriptionThatIsNotAnsweredOrWhoseDeviceIsGoneIsNotEnded() async throws {
    let faults = try await Faults()
    let characteristics = try await faults.connect()
    try await faults.central.subscribe(to: characteristics[0]) { _ in }
    for event in Recorded.deviceRemoved { await faults.fake.signal(event) }
    try await faults.tested.lost(Recorded.id)
    await faults.fake.signal(Recorded.deviceAdded)
    _ = try await faults.tested.seen()
    await faults.fake.answer("StartNotify", FakeBlueZ.never)
    let again = try await faults.connect()
    let subscribing = Task { try await faults.central.subscribe(to: again[0]) { _ in } }
    try await faults.fake.called("StartNotify")
    await faults.central.disconnect(Recorded.id)
    await #expect(throws: CentralError.disconnected) { try await subscribing.value }
    #expect(faults.fake.count("StopNotify") == 0)
    try await faults.tested.end()
  }

  // MARK: Refused for good

  @Test func notificationsThatAreTakenAreReadInstead() async throws {
    let faults = try await Faults(answers: ["StartNotify": Self.acquired])
    let temperature = try #require(try await faults.connect().temperature)
    await #expect(throws: CentralError.notifyAcquired) {
      try await faults.central.subscribe(to: temperature) { _ in }
    }
    // Either would make a bluetoothd before 5.84 crash.
    #expect(faults.fake.count("StopNotify") == 0)
    #expect(faults.fake.count("RemoveDevice") == 0)

    let results = Record<Result<[UInt8], CentralError>>()
    let polling = Task {
      await faults.central.poll(temperature, every: { .milliseconds(1) }, subscribes: true) {
        results.append($0)
      }
    }
    for _ in 0..<3 { #expect(try await results.next("a value") { $0 } == .success([21])) }
    await faults.fake.answer(
      "ReadValue", FakeBlueZ.error("org.bluez.Error.NotPermitted", "Read not permitted"))
    _ = try await results.next("a failure") {
      $0 == .failure(.refused("NotPermitted: Read not permitted")) ? true : nil
    }
    await faults.fake.answer("ReadValue") { $0.reply($1, .bytes([22])) }
    _ = try await results.next("a value again") { $0 == .success([22]) ? true : nil }
    // Not beyond the end of the link.
    await faults.fake.answer("ReadValue", FakeBlueZ.never)
    await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    try await faults.tested.disconnected(Recorded.id)
    #expect(await !polling.value)
    let count = results.elements.count
    await faults.fake.answer("ReadValue") { $0.reply($1, .bytes([23])) }
    let again = try #require(try await faults.connect().temperature)
    #expect(try await faults.central.read(again).get() == [23])
    #expect(results.elements.count == count)
    try await faults.tested.end()
  }

  @Test func aPauseBetweenTwoReadsEndsWithTheLink() async throws {
    let faults = try await Faults()
    let temperature = try #require(try await faults.connect().temperature)
    let hasEnded = Record<Bool>()
    let polling = Task {
      await faults.central.poll(temperature, every: { .seconds(3600) }, subscribes: false) { _ in }
      hasEnded.append(true)
    }
    defer { polling.cancel() }
    await faults.fake.signal(Recorded.device(["Connected": .boolean(false)]))
    try await faults.tested.disconnected(Recorded.id)
    _ = try await hasEnded.next("the end of the polling") { $0 }
    try await faults.tested.end()
  }

  @Test func releasedNotificationsAreSubscribedTo() async throws {
    let faults = try await Faults(answers: ["StartNotify": Self.acquired]) {
      $0.notifyRetry = .milliseconds(5)
    }
    let temperature = try #require(try await faults.connect().temperature)
    let results = Record<Result<[UInt8], CentralError>>()
    let polling = Task {
      await faults.central.poll(temperature, every: { .milliseconds(1) }, subscribes: true) {
        results.append($0)
      }
    }
    _ = try await results.next("a value that was read") { $0 }
    try await faults.fake.called("StartNotify")
    await faults.fake.answer("StartNotify", FakeBlueZ.ok)
    #expect(await polling.value)
    let reads = faults.fake.count("ReadValue")
    await faults.notify([25])
    _ = try await results.next("a notification") { $0 == .success([25]) ? true : nil }
    #expect(faults.fake.count("ReadValue") == reads)
    try await faults.tested.end()
  }
}
