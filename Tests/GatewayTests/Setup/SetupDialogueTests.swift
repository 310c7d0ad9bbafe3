import Configuration
import GATT
import JSON
import Testing

@testable import Gateway

/// The dialogue of `init`, without terminal, Bluetooth and broker.
@Suite struct SetupDialogueTests {
  static let zugev = SetupCandidate(
    address: BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5), name: "BBC micro:bit [zugev]", signal: -53)
  static let vetip = SetupCandidate(
    address: BluetoothAddress(truncating: 0xD05A_0000_C0DE), name: "BBC micro:bit [vetip]", signal: -77)

  /// A dialogue, and its last step.
  private struct Talk {
    var dialogue: SetupDialogue
    var step: SetupDialogue.Step

    init(
      _ dialogue: SetupDialogue,
      found: [SetupCandidate] = [SetupDialogueTests.zugev, SetupDialogueTests.vetip]
    ) {
      self.dialogue = dialogue
      step = self.dialogue.start()
      if step == .scan { step = self.dialogue.found(found) }
    }

    /// The last question.
    var question: SetupQuestion? { if case .ask(let question) = step { question } else { nil } }
    var topic: SetupTopic? { question?.topic }

    mutating func say(_ answers: String...) {
      for answer in answers { step = dialogue.answer(answer) }
    }

    /// Answers with presets until this question.
    mutating func go(to topic: SetupTopic) throws {
      for _ in 0..<50 where self.topic != topic {
        if case .tryBroker = step { step = dialogue.brokerTried([]) } else { say("") }
      }
      try #require(self.topic == topic, "\(step)")
    }

    /// The configuration with which the broker is to be tried.
    func configurationToTry() throws -> Configuration {
      guard case .tryBroker(let configuration) = step else { throw CommandFailure(.refused, "\(step)") }
      return configuration
    }

    /// The document to be written.
    func document() throws -> JSONValue {
      guard case .write(let plan) = step, let text = plan.text else {
        throw CommandFailure(.refused, "\(step)")
      }
      return try JSONParser.parse(Array(text.utf8))
    }
  }

  private func present(_ text: String? = nil, password: String? = nil) throws -> PresentConfiguration {
    var present = PresentConfiguration(path: "/tmp/config.json")
    guard let text else { return present }
    (present.configuration, present.document) = try ConfigurationFile.parse(Array(text.utf8), in: "/tmp")
    present.password = password.map { Array($0.utf8) }
    return present
  }

  private func talk(
    _ present: PresentConfiguration? = nil,
    found: [SetupCandidate] = [SetupDialogueTests.zugev, SetupDialogueTests.vetip],
    given: [SetupTopic: String] = [:], isUnattended: Bool = false
  ) throws -> Talk {
    let dialogue = SetupDialogue(
      try present ?? self.present(), backup: "config.json.bak", given: given, isUnattended: isUnattended)
    return Talk(dialogue, found: found)
  }

  // MARK: From beginning to end

  @Test func fromNothingToAConfiguration() throws {
    var talk = try talk()
    let list = try #require(talk.question).lines.joined(separator: "\n")
    #expect(list.contains("1  BBC micro:bit [zugev]  C5:A1:B2:C3:D4:E5  -53 dBm, strong"))
    #expect(list.contains("2  BBC micro:bit [vetip]  D0:5A:00:00:C0:DE  -77 dBm, good"))
    talk.say("all", "Kitchen window", "Kitchen", "", "")
    #expect(talk.topic == .later)
    talk.say("", "broker.local", "n", "", "gateway")
    #expect(talk.question?.isSecret == true)
    talk.say(" secret ")
    let configuration = try talk.configurationToTry()
    #expect(configuration.mqtt.host == "broker.local" && configuration.mqtt.port == 1883)
    // A password may begin or end with a space.
    #expect(configuration.mqtt.username == "gateway" && configuration.mqtt.password == Array(" secret ".utf8))
    talk.step = talk.dialogue.brokerTried([])
    #expect(talk.topic == .confirmation)
    talk.say("y")
    guard case .write(let plan) = talk.step else {
      Issue.record("\(talk.step)")
      return
    }
    #expect(plan.password == Array(" secret ".utf8) && plan.passwordFile == "mqtt-password")
    #expect(
      plan.text == """
        {
          "mqtt": {
            "host": "broker.local",
            "port": 1883,
            "username": "gateway",
            "password_file": "mqtt-password"
          },
          "devices": [
            {
              "match": {"identifier":"C5:A1:B2:C3:D4:E5"},
              "id": "kitchen-window",
              "name": "Kitchen window",
              "area": "Kitchen"
            },
            {"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"vetip"}
          ]
        }

        """)
    #expect(talk.dialogue.written(.absent) == .end(talk.dialogue.closing))
  }

  @Test func aPathWithABlankCanBeCopiedToAShell() throws {
    let present = PresentConfiguration(path: "/tmp/my folder/config.json")
    var dialogue = SetupDialogue(present, backup: "b", program: ".build/release/microbit-gateway")
    #expect(
      dialogue.written(.absent)
        == .end([
          "Start the gateway with: .build/release/microbit-gateway run --config '/tmp/my folder/config.json'"
        ]))
  }

  @Test func theServiceIsStartedOrRestarted() throws {
    for (state, isRestart) in [(ServiceUnit.State.stopped, false), (.running, true)] {
      var talk = try talk()
      talk.step = talk.dialogue.written(state)
      #expect(talk.topic == .service)
      talk.say("maybe")
      #expect(talk.question?.lines == ["Please answer y (yes) or n (no)."])
      var other = talk
      other.say("n")
      #expect(other.step == .end(talk.dialogue.closing))
      talk.say("")
      #expect(talk.step == .useService(restart: isRestart))
    }
  }

  @Test func withoutConfirmationNothingIsWritten() throws {
    var talk = try talk()
    try talk.go(to: .confirmation)
    talk.say("n")
    #expect(talk.step == .end(["Nothing was changed."]))
  }

  // MARK: Answers that cannot be used

  private static let wrong: [(SetupTopic, String, String)] = [
    (.devices, "3", "The list has the numbers 1 to 2."), (.devices, "0", "The list has the numbers 1 to 2."),
    (.devices, "the first", "is not a number"), (.devices, "2-1", "is not a number"),
    (.devices, "1-", "is not a number"), (.devices, ",", "choose one at least"),
    (.devices, "99999999999999999999", "is not a number"), (.devices, "none", "is not a number"),
    (.name(0), "a\u{7}b", "control character"), (.room(0), "a\u{1B}b", "control character"),
    (.later, "perhaps", "y (yes) or n (no)"), (.host, "mqtt://broker", "is not a host name"),
    (.host, "broker:1883", "is not a host name"), (.host, "my broker", "white space"),
    (.tls, "1", "y (yes) or n (no)"), (.port, "0", "1 to 65535"), (.port, "65536", "1 to 65535"),
    (.port, "mqtt", "1 to 65535"), (.username, "a\u{7}", "control character"),
    (.confirmation, "x", "y (yes) or n (no)"),
  ]

  @Test(arguments: wrong)
  func isAskedAgainWithTheReason(topic: SetupTopic, answer: String, reason: String) throws {
    var talk = try talk()
    try talk.go(to: topic)
    let before = talk.question
    talk.say(answer)
    #expect(talk.topic == topic && talk.question?.prompt == before?.prompt)
    #expect(talk.question?.lines.joined().contains(reason) == true, "\(talk.step)")
    // The question can still be answered.
    talk.say("")
    #expect(talk.topic != topic)
  }

  @Test func namesThatMakeTheSameIDAreRefused() throws {
    var talk = try talk()
    talk.say("all", "Kitchen", "")
    #expect(talk.topic == .name(1))
    talk.say("kitchen!")
    #expect(talk.topic == .name(1))
    #expect(
      talk.question?.lines == [
        #""kitchen" is already the name of the micro:bit C5:A1:B2:C3:D4:E5 in topics: choose another name."#
      ])
    talk.say("c5a1b2c3d4e5")
    #expect(
      talk.topic == .room(1), "an address in use as an id is another's default, but the first has an id")
  }

  @Test func anIDOfThePresentFileIsRefused() throws {
    let file = #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:EE"},"id":"kitchen"}]}"#
    var talk = try talk(present(file), found: [Self.zugev])
    talk.say("1", "Kitchen")
    #expect(talk.topic == .name(0))
    #expect(
      talk.question?.lines.first?.contains("already the name of the micro:bit C5:A1:B2:C3:D4:EE") == true)
  }

  @Test func aNameOutsideASCIINeedsAShortName() throws {
    var talk = try talk(found: [Self.zugev])
    talk.say("1", "Küche")
    #expect(talk.topic == .id(0) && talk.question?.preset == "zugev")
    talk.say("Küche")
    #expect(talk.topic == .id(0) && talk.question?.lines.first?.contains("a to z") == true)
    talk.say("all")
    #expect(talk.question?.lines.first?.contains("another meaning") == true)
    talk.say("kueche")
    #expect(talk.topic == .room(0))
    try talk.go(to: .confirmation)
    talk.say("")
    let entry = try #require(try talk.document()["devices"]?.elements.first)
    #expect(entry["id"] == "kueche" && entry["name"] == "Küche")
  }

  // MARK: No micro:bit

  @Test func withoutAMicrobitItIsLookedForAgainOrAllAreUsed() throws {
    var talk = try talk(found: [])
    #expect(
      talk.topic == .devices && talk.question?.lines.joined().contains("No micro:bit was found") == true)
    talk.say("1")
    #expect(talk.question?.lines == ["Please answer again or every."])
    talk.say("")
    #expect(talk.topic == .devices)
    talk.say("again")
    #expect(talk.step == .scan)
    talk.step = talk.dialogue.found([])
    talk.say("every")
    #expect(talk.topic == .host)
    try talk.go(to: .confirmation)
    talk.say("")
    #expect(try talk.document()["devices"] == [SetupDocument.every])
  }

  @Test func withoutBluetoothTheReasonIsShown() throws {
    var talk = try talk(found: [])
    talk.say("again")
    talk.step = talk.dialogue.scanFailed("cannot use Bluetooth: the adapter is off")
    #expect(talk.question?.lines.contains("cannot use Bluetooth: the adapter is off") == true)
  }

  // MARK: The broker

  @Test func aBrokerThatRefusesIsTriedAgainChangedOrKept() throws {
    var talk = try talk(found: [Self.zugev])
    talk.say("1", "", "", "", "", "", "", "gateway", "wrong")
    guard case .tryBroker = talk.step else {
      Issue.record("\(talk.step)")
      return
    }
    talk.step = talk.dialogue.brokerTried(["the broker rejected the login"])
    #expect(talk.topic == .brokerTrouble && talk.question?.lines == ["the broker rejected the login"])
    talk.say("")
    #expect(talk.topic == .brokerTrouble)
    talk.say("t")
    guard case .tryBroker = talk.step else {
      Issue.record("\(talk.step)")
      return
    }
    talk.step = talk.dialogue.brokerTried(["the broker rejected the login"])
    var kept = talk
    kept.say("k")
    #expect(kept.topic == .confirmation)
    talk.say("c")
    #expect(talk.topic == .host)
    talk.say("", "", "", "")
    #expect(talk.topic == .password && talk.question?.prompt.contains("as before") == true)
    talk.say("right")
    let configuration = try talk.configurationToTry()
    #expect(configuration.mqtt.username == "gateway" && configuration.mqtt.password == Array("right".utf8))
  }

  /// As with --password-file, for a user that the present file does not have.
  @Test func aGivenPasswordIsKeptForAGivenUser() throws {
    let dialogue = SetupDialogue(
      try present(), backup: "b", given: [.username: "gateway"], password: .typed(Array("secret".utf8)),
      isUnattended: true)
    let talk = Talk(dialogue, found: [Self.zugev])
    let configuration = try talk.configurationToTry()
    #expect(configuration.mqtt.username == "gateway" && configuration.mqtt.password == Array("secret".utf8))
  }

  @Test func aCertificateThatTheServiceMayNotReadIsRefused() throws {
    let dialogue = SetupDialogue(
      try present(), backup: "b", isReadable: { $0.hasPrefix("/etc/") })
    var talk = Talk(dialogue, found: [Self.zugev])
    try talk.go(to: .tls)
    talk.say("y", "/root/ca.pem")
    #expect(
      talk.topic == .caFile
        && talk.question?.lines.first?.contains("sudo install -m 600 -o microbit-gateway /root/ca.pem")
          == true
    )
    talk.say("/etc/microbit-gateway/ca.pem")
    #expect(talk.topic == .port)
  }

  @Test func encryptionChangesTheUsualPort() throws {
    var talk = try talk(found: [Self.zugev])
    try talk.go(to: .tls)
    talk.say("y", "/etc/ssl/ca.pem")
    #expect(talk.question?.preset == "8883")
    try talk.go(to: .confirmation)
    talk.say("")
    let mqtt = try #require(try talk.document()["mqtt"])
    #expect(mqtt["port"] == .integer(8883) && mqtt["tls"] == ["ca_file": "/etc/ssl/ca.pem"])
  }

  // MARK: A file that is there

  private static let file = #"""
    { "$schema": "s", "gateway": { "id": "attic" },
      "mqtt": { "host": "old", "base_topic": "home", "username": "u", "password_file": "secret" },
      "devices": [ { "match": { "identifier": "C5:A1:B2:C3:D4:E5" }, "id": "hall", "period": 5000 },
        { "match": { "name_prefix": "BBC micro:bit" } } ],
      "profiles": {} }
    """#

  @Test func otherConfigurationKeysAreKept() throws {
    var talk = try talk(present(Self.file, password: "old"))
    #expect(
      talk.question?.preset == "1" && talk.question?.lines.joined().contains("configured as hall") == true)
    talk.say("all", "", "", "Bedroom", "", "", "new")
    try talk.go(to: .confirmation)
    let shown = try #require(talk.question).lines
    #expect(shown.contains(#"  -     "host": "old","#) && shown.contains(#"  +     "host": "new","#))
    #expect(shown.contains("The present file is kept as config.json.bak."))
    talk.say("y")
    let document = try talk.document()
    guard case .object(let object) = document else { return }
    #expect(object.names == ["$schema", "gateway", "mqtt", "devices", "profiles"])
    let mqtt = try #require(document["mqtt"])
    #expect(mqtt["base_topic"] == "home" && mqtt["password_file"] == "secret" && mqtt["host"] == "new")
    // Before the one for every micro:bit, which would match first.
    #expect(
      document["devices"]?.elements == [
        ["match": ["identifier": "C5:A1:B2:C3:D4:E5"], "id": "hall", "period": .integer(5000)],
        ["match": ["identifier": "D0:5A:00:00:C0:DE"], "id": "bedroom", "name": "Bedroom"],
        ["match": ["name_prefix": "BBC micro:bit"]],
      ])
  }

  @Test func theSameAnswersChangeNothing() throws {
    let file = Self.file.replacing(#""host": "old","#, with: #""host": "old", "port": 1883,"#)
    var talk = try talk(present(file, password: "old"))
    for _ in 0..<20 {
      if case .tryBroker = talk.step { talk.step = talk.dialogue.brokerTried([]) }
      if case .write(let plan) = talk.step {
        #expect(plan.isEmpty)
        return
      }
      talk.say("")
    }
    Issue.record("\(talk.step)")
  }

  @Test func aNewPasswordGoesToThePresentFile() throws {
    var talk = try talk(present(Self.file, password: "old"))
    try talk.go(to: .password)
    talk.say("new")
    try talk.go(to: .confirmation)
    talk.say("")
    guard case .write(let plan) = talk.step else {
      Issue.record("\(talk.step)")
      return
    }
    #expect(plan.password == Array("new".utf8) && plan.passwordFile == "secret")
  }

  @Test func anotherUserHasAnotherPassword() throws {
    var talk = try talk(present(Self.file, password: "old"))
    try talk.go(to: .username)
    talk.say("other")
    #expect(talk.topic == .password && talk.question?.prompt.contains("as before") == false)
    talk.say("")
    let configuration = try talk.configurationToTry()
    #expect(configuration.mqtt.password == nil && configuration.mqtt.passwordFile == nil)
  }

  // MARK: Options instead of questions

  @Test func questionsWithGivenAnswersAreSkipped() throws {
    var talk = try talk(given: [.host: "broker", .port: "8883", .username: "u"])
    talk.say("1", "", "", "")
    #expect(talk.topic == .tls && talk.question?.preset == "y")
    talk.say("", "")
    #expect(talk.topic == .password)
  }

  private static let wrongOptions: [(SetupTopic, String, String)] = [
    (.host, "mqtt://x", "--broker: "), (.port, "99999", "--port: "), (.username, "a\u{7}", "--username: "),
  ]

  @Test(arguments: wrongOptions)
  func wrongOptionsAreWrongUsage(topic: SetupTopic, text: String, reason: String) throws {
    let talk = try talk(given: [topic: text], isUnattended: true)
    guard case .fail(let failure) = talk.step else {
      Issue.record("\(talk.step)")
      return
    }
    #expect(failure.status == .usage && failure.text.hasPrefix(reason))
  }

  @Test func unattendedEverythingFoundIsUsed() throws {
    var talk = try talk(isUnattended: true)
    let configuration = try talk.configurationToTry()
    #expect(configuration.devices.map { $0.id?.description } == ["zugev", "vetip"])
    talk.step = talk.dialogue.brokerTried([])
    _ = try talk.document()
    #expect(talk.dialogue.written(.stopped) == .useService(restart: false))
  }

  @Test func unattendedRunAsksNothing() throws {
    let nobody = try talk(found: [], isUnattended: true)
    guard case .fail(let failure) = nobody.step else {
      Issue.record("\(nobody.step)")
      return
    }
    #expect(failure.status == .unavailable && failure.text.contains("--device"))
    var refused = try talk(isUnattended: true)
    refused.step = refused.dialogue.brokerTried(["the broker rejected the login"])
    guard case .fail(let failure) = refused.step else {
      Issue.record("\(refused.step)")
      return
    }
    #expect(failure.status == .unavailable && failure.text.contains("rejected the login"))
  }

  @Test func devicesOfTheCommandLine() throws {
    var setup = Setup()
    setup.devices = ["C5:A1:B2:C3:D4:E5=Kitchen window,Kitchen", "d05a0000c0de"]
    setup.usesAll = true
    setup.isUnattended = true
    setup.triesBroker = false
    var dialogue = try setup.dialogue(try present(), backup: "b")
    guard case .write(let plan) = dialogue.start(), let text = plan.text else {
      Issue.record("no plan")
      return
    }
    #expect(
      try JSONParser.parse(Array(text.utf8))["devices"]?.elements == [
        [
          "match": ["identifier": "C5:A1:B2:C3:D4:E5"], "id": "kitchen-window", "name": "Kitchen window",
          "area": "Kitchen",
        ],
        ["match": ["identifier": "D0:5A:00:00:C0:DE"]], SetupDocument.every,
      ])
    setup.devices = ["kitchen"]
    #expect(throws: CommandFailure.self) { try setup.dialogue(present(), backup: "b") }
    setup.devices = ["C5:A1:B2:C3:D4:E5", "c5a1b2c3d4e5=a"]
    #expect(throws: CommandFailure.self) { try setup.dialogue(present(), backup: "b") }
  }
}
