import EventLoop
import GATT
import JSON
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import MQTT

@Suite struct RetainedCommandsTests {
  private let kitchen = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
  private let hall = BluetoothAddress(truncating: 1)
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func database() -> StateDatabase {
    StateDatabase(
      path: folder.path + "/state.db", schema: Schema(version: 0, migrations: []), loop: EventLoop())
  }

  private func command(_ payload: String, _ topic: String = "microbit/kitchen/period/set") -> MQTTReceived {
    MQTTReceived(topic: topicName(topic), payload: Array(payload.utf8), qos: .atLeastOnce, retain: true)
  }

  @Test func repeatedCommandIsNotNew() {
    var retained = RetainedCommands(database().section("commands"))
    let answers = [
      retained.record(command("5000"), for: kitchen), retained.record(command("5000"), for: kitchen),
      retained.record(command("6000"), for: kitchen), retained.record(command("6000"), for: kitchen),
      // Sent again after another one: a new command.
      retained.record(command("5000"), for: kitchen),
    ]
    #expect(answers == [true, false, true, false, true])
  }

  @Test func commandsAreTrackedPerTopicAndDevice() {
    var retained = RetainedCommands(database().section("commands"))
    let all = "microbit/all/period/set"
    let answers = [
      retained.record(command("5000"), for: kitchen), retained.record(command("5000", all), for: kitchen),
      retained.record(command("5000", all), for: hall), retained.record(command("5000"), for: kitchen),
      retained.record(command("5000", all), for: kitchen),
    ]
    #expect(answers == [true, true, true, false, false])
  }

  @Test func commandsAreKnownAfterARestart() {
    let before = database()
    var retained = RetainedCommands(before.section("commands"))
    _ = retained.record(command("5000"), for: kitchen)
    _ = retained.record(command("{\"value\":5000}\n", "microbit/all/period/set"), for: kitchen)
    before.close()
    let after = database()
    let section = after.section("commands")
    #expect(
      section.records.mapValues { String(decoding: $0, as: UTF8.self) } == [
        kitchen.description:
          #"{"microbit/kitchen/period/set":\#(RetainedCommands.digest(Array("5000".utf8))),"#
          + #""microbit/all/period/set":\#(RetainedCommands.digest(Array("{\"value\":5000}\n".utf8)))}"#
      ])
    var restored = RetainedCommands(section)
    let answers = [
      restored.record(command("5000"), for: kitchen),
      restored.record(command("{\"value\":5000}\n", "microbit/all/period/set"), for: kitchen),
      restored.record(command("5001"), for: kitchen),
    ]
    #expect(answers == [false, false, true])
    after.close()
  }

  @Test func nothingIsKeptOfARemovedDevice() {
    let before = database()
    var retained = RetainedCommands(before.section("commands"))
    _ = retained.record(command("5000"), for: kitchen)
    _ = retained.record(command("5000"), for: hall)
    retained.forget(kitchen)
    before.close()
    let after = database()
    var restored = RetainedCommands(after.section("commands"))
    let answers = [
      restored.record(command("5000"), for: kitchen), restored.record(command("5000"), for: hall),
    ]
    #expect(answers == [true, false])
    after.close()
  }

  @Test func deletedCommandIsNewWhenSentAgain() {
    let before = database()
    var retained = RetainedCommands(before.section("commands"))
    let all = "microbit/all/period/set"
    _ = retained.record(command("5000"), for: kitchen)
    _ = retained.record(command("5000", all), for: kitchen)
    retained.remove(topicName("microbit/kitchen/period/set"), for: kitchen)
    retained.remove(topicName("microbit/kitchen/period/set"), for: hall)
    before.close()
    let after = database()
    var restored = RetainedCommands(after.section("commands"))
    let answers = [
      restored.record(command("5000", all), for: kitchen), restored.record(command("5000"), for: kitchen),
    ]
    #expect(answers == [false, true])
    after.close()
  }

  @Test func commandsOf64TopicsAreKeptPerDevice() {
    var retained = RetainedCommands(database().section("commands"))
    for number in 0..<64 {
      _ = retained.record(command("1", "microbit/area/a\(number)/period/set"), for: kitchen)
    }
    let known = retained.record(command("1", "microbit/area/a0/period/set"), for: kitchen)
    #expect(!known)
    _ = retained.record(command("1"), for: kitchen)
    let answers = [
      retained.record(command("1"), for: kitchen),
      retained.record(command("1", "microbit/area/a63/period/set"), for: kitchen),
      retained.record(command("1", "microbit/area/a0/period/set"), for: kitchen),
    ]
    #expect(answers == [false, false, true], "the oldest one was dropped")
  }

  @Test(arguments: ["", "{", "[]", "7", #"{"microbit/kitchen/period/set":"5"}"#, #"{"a":null}"#])
  func damagedRecordsAreDropped(record: String) {
    let before = database()
    before.section("commands").put(kitchen.description, Array(record.utf8))
    before.section("commands").put("nobody", Array(#"{"microbit/kitchen/period/set":5}"#.utf8))
    before.close()
    var retained = RetainedCommands(database().section("commands"))
    let isNew = retained.record(command("5000"), for: kitchen)
    #expect(isNew)
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
