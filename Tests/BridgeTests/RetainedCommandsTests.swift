import EventLoop
import GATT
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import MQTT

@LoopActor @Suite struct RetainedCommandsTests {
  private let kitchen = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
  private let hall = BluetoothAddress(truncating: 1)
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private var path: String { folder.path + "/state.db" }

  private func database() -> StateDatabase { StateDatabase(path: path) }

  private func command(_ payload: String, _ topic: String = "microbit/kitchen/period/set") -> MQTTReceived {
    MQTTReceived(topic: topicName(topic), payload: Array(payload.utf8), qos: .atLeastOnce, retain: true)
  }

  @Test func repeatedCommandIsNotNew() {
    var retained = RetainedCommands(database().section("commands"))
    let answers = [
      retained.handle(command("5000"), for: kitchen), retained.handle(command("5000"), for: kitchen),
      retained.handle(command("6000"), for: kitchen), retained.handle(command("6000"), for: kitchen),
      // Sent again after another one: a new command.
      retained.handle(command("5000"), for: kitchen),
    ]
    #expect(answers == [true, false, true, false, true])
  }

  /// A bridge between brokers publishes its copy whenever it connects; a broker may send its own late.
  @Test func copyThatLooksNewIsNotCarriedOut() {
    var retained = RetainedCommands(database().section("commands"))
    let decisions = ["5000", "5000", "6000", "6000", "", "6000"].map {
      retained.decide(command($0), for: kitchen, isNew: true)
    }
    #expect(decisions == [.execute, .ignore, .execute, .ignore, .ignore, .execute])
  }

  @Test func commandsAreTrackedPerTopicAndDevice() {
    var retained = RetainedCommands(database().section("commands"))
    let all = "microbit/all/period/set"
    let answers = [
      retained.handle(command("5000"), for: kitchen), retained.handle(command("5000", all), for: kitchen),
      retained.handle(command("5000", all), for: hall), retained.handle(command("5000"), for: kitchen),
      retained.handle(command("5000", all), for: kitchen),
    ]
    #expect(answers == [true, true, true, false, false])
  }

  @Test func commandsAreKnownAfterARestart() async throws {
    let before = database()
    var retained = RetainedCommands(before.section("commands"))
    retained.handle(command("5000"), for: kitchen)
    retained.handle(command("{\"value\":5000}\n", "microbit/all/period/set"), for: kitchen)
    await before.close(within: patience)
    let stored = try #require(StateDatabase.sections(path: path)["commands"])
    #expect(
      stored.mapValues { String(decoding: $0, as: UTF8.self) } == [
        kitchen.description:
          #"{"microbit/kitchen/period/set":\#(RetainedCommands.digest(Array("5000".utf8))),"#
          + #""microbit/all/period/set":\#(RetainedCommands.digest(Array("{\"value\":5000}\n".utf8)))}"#
      ])
    let after = database()
    var restored = RetainedCommands(after.section("commands"))
    let answers = [
      restored.handle(command("5000"), for: kitchen),
      restored.handle(command("{\"value\":5000}\n", "microbit/all/period/set"), for: kitchen),
      restored.handle(command("5001"), for: kitchen),
    ]
    #expect(answers == [false, false, true])
    await after.close(within: patience)
  }

  @Test func nothingIsKeptOfARemovedDevice() async {
    let before = database()
    var retained = RetainedCommands(before.section("commands"))
    retained.handle(command("5000"), for: kitchen)
    retained.handle(command("5000"), for: hall)
    retained.forget(kitchen)
    await before.close(within: patience)
    let after = database()
    var restored = RetainedCommands(after.section("commands"))
    let answers = [
      restored.handle(command("5000"), for: kitchen), restored.handle(command("5000"), for: hall),
    ]
    #expect(answers == [true, false])
    await after.close(within: patience)
  }

  @Test func deletedCommandIsNewWhenSentAgain() async {
    let before = database()
    var retained = RetainedCommands(before.section("commands"))
    let all = "microbit/all/period/set"
    retained.handle(command("5000"), for: kitchen)
    retained.handle(command("5000", all), for: kitchen)
    for device in [kitchen, hall] {
      let decision = retained.decide(command(""), for: device)
      #expect(decision == .ignore)
    }
    await before.close(within: patience)
    let after = database()
    var restored = RetainedCommands(after.section("commands"))
    let answers = [
      restored.handle(command("5000", all), for: kitchen), restored.handle(command("5000"), for: kitchen),
    ]
    #expect(answers == [false, true])
    await after.close(within: patience)
  }

  @Test func commandsOf64TopicsAreKeptPerDevice() {
    var retained = RetainedCommands(database().section("commands"))
    for number in 0..<64 {
      retained.handle(command("1", "microbit/area/a\(number)/period/set"), for: kitchen)
    }
    let known = retained.handle(command("1", "microbit/area/a0/period/set"), for: kitchen)
    #expect(!known)
    retained.handle(command("1"), for: kitchen)
    let answers = [
      retained.handle(command("1"), for: kitchen),
      retained.handle(command("1", "microbit/area/a63/period/set"), for: kitchen),
      retained.handle(command("1", "microbit/area/a0/period/set"), for: kitchen),
    ]
    #expect(answers == [false, false, true], "the oldest one was dropped")
  }

  @Test(arguments: ["", "{", "[]", "7", #"{"microbit/kitchen/period/set":"5"}"#, #"{"a":null}"#])
  func damagedRecordsAreDropped(record: String) async {
    let before = database()
    before.section("commands").put(kitchen.description, Array(record.utf8))
    before.section("commands").put("nobody", Array(#"{"microbit/kitchen/period/set":5}"#.utf8))
    await before.close(within: patience)
    var retained = RetainedCommands(database().section("commands"))
    let isNew = retained.handle(command("5000"), for: kitchen)
    #expect(isNew)
  }

  @Test func commandsThatAreNotHandledAreRepeatedAfterARestart() async {
    let before = database()
    var retained = RetainedCommands(before.section("commands"))
    retained.decide(command("5000"), for: kitchen)
    // One that replaces another.
    retained.handle(command("1", "microbit/all/period/set"), for: kitchen)
    retained.decide(command("2", "microbit/all/period/set"), for: kitchen)
    retained.decide(command("5000"), for: hall)
    retained.decide(command("6000"), for: hall)
    // Of the command before.
    retained.handled(command("5000"), for: hall)
    let known = [
      retained.decide(command("5000"), for: kitchen), retained.decide(command("6000"), for: hall),
    ]
    #expect(known == [.ignore, .ignore])
    await before.close(within: patience)
    let after = database()
    var restored = RetainedCommands(after.section("commands"))
    let again = [
      restored.decide(command("5000"), for: kitchen),
      restored.decide(command("1", "microbit/all/period/set"), for: kitchen),
      restored.decide(command("2", "microbit/all/period/set"), for: kitchen),
      restored.decide(command("5000"), for: hall), restored.decide(command("6000"), for: hall),
    ]
    #expect(again == Array(repeating: .execute, count: 5))
    await after.close(within: patience)
  }

  @Test(arguments: [true, false])
  func whatIsNotCarriedOutIsRejectedOnce(isMQTT5: Bool) {
    var retained = RetainedCommands(database().section("commands"))
    let property = isMQTT5 ? Property.microbitLEDText : .microbitPeriod
    let decisions = [(kitchen, true), (kitchen, true), (kitchen, false), (hall, false)].map {
      retained.decide(command("5000"), for: $0, property, isMQTT5: isMQTT5, isNew: $1)
    }
    let reason =
      isMQTT5
      ? "a retained command for an event, or a value of a program, is not carried out"
      : "retained commands require MQTT 5: publish it without the retain flag"
    #expect(
      decisions == [
        // A bridge publishes its copies again.
        .reject(reason: reason), .ignore, .ignore, .reject(reason: reason),
      ])
    retained.forget(kitchen)
    let afterRemoval = retained.decide(
      command("5000"), for: kitchen, property, isMQTT5: isMQTT5, isNew: false)
    #expect(afterRemoval == .reject(reason: reason))
    let afterDeletion = ["", "5000"].map {
      retained.decide(command($0), for: hall, property, isMQTT5: isMQTT5, isNew: false)
    }
    #expect(afterDeletion == [.ignore, .reject(reason: reason)])
    // Another one is published while the gateway is away.
    let afterChange = ["6000", "6000"].map {
      retained.decide(command($0), for: hall, property, isMQTT5: isMQTT5, isNew: false)
    }
    #expect(afterChange == [.reject(reason: reason), .ignore])
  }

  @Test(arguments: [nil, Property.microbitTemperature])
  func whatCannotBeSetIsRefusedLikeAnyOtherCommandWhenItIsPublished(property: Property?) {
    var retained = RetainedCommands(database().section("commands"))
    func decide(_ payload: String, isNew: Bool) -> RetainedCommands.Decision {
      retained.decide(command(payload), for: kitchen, property, isMQTT5: true, isNew: isNew)
    }
    let decisions = [
      decide("5000", isNew: false), decide("5000", isNew: true), decide("5000", isNew: true),
      decide("6000", isNew: true), decide("", isNew: true), decide("6000", isNew: true),
    ]
    #expect(decisions == [.ignore, .execute, .ignore, .execute, .ignore, .execute])
  }

  /// More are answered each time that they look new.
  @Test func of64TopicsItIsKnownThatTheyWereRejected() {
    var retained = RetainedCommands(database().section("commands"))
    func isAnswered(_ topic: Int, isNew: Bool) -> Bool {
      let message = command("1", "microbit/area/a\(topic)/temperature/set")
      let decision = retained.decide(
        message, for: kitchen, .microbitTemperature, isMQTT5: true, isNew: isNew)
      return decision == .execute
    }
    let answers = (0..<65).map { isAnswered($0, isNew: true) }
    #expect(answers.allSatisfy { $0 })
    let again = [isAnswered(63, isNew: true), isAnswered(64, isNew: true), isAnswered(64, isNew: false)]
    #expect(again == [false, true, false])
  }

  /// The digest of FNV-1a as its authors give it (RFC 9923).
  @Test(
    arguments: [
      ("", 0xCBF2_9CE4_8422_2325), ("a", 0xAF63_DC4C_8601_EC8C), ("foobar", 0x8594_4171_F739_67E8),
    ] as [(String, UInt64)])
  func digestsAreTheSameInEveryRun(text: String, digest: UInt64) {
    #expect(RetainedCommands.digest(Array(text.utf8)) == Int(truncatingIfNeeded: digest))
  }
}

extension RetainedCommands {
  /// A command for the period arrives.
  @discardableResult
  fileprivate mutating func decide(
    _ message: MQTTReceived, for address: BluetoothAddress, isNew: Bool = false
  ) -> Decision {
    decide(message, for: address, .microbitPeriod, isMQTT5: true, isNew: isNew)
  }

  /// The command arrives and is carried out.
  /// - Returns: whether it differs from the last one of its topic.
  @discardableResult
  fileprivate mutating func handle(_ message: MQTTReceived, for address: BluetoothAddress) -> Bool {
    guard decide(message, for: address) == .execute else { return false }
    handled(message, for: address)
    return true
  }
}
