import Configuration
import GATT
import JSON
import Testing

@testable import Gateway

/// The dialogue of `init`, without terminal, Bluetooth and broker.
@Suite struct SetupDialogueTests {
  static let zugev = SetupCandidate(
    address: BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5), name: "BBC micro:bit [zugev]", signal: -53)
  static let zutip = SetupCandidate(
    address: BluetoothAddress(truncating: 0xD05A_0000_C0DE), name: "BBC micro:bit [zutip]", signal: -77)

  /// Drives a dialogue; holds its last step.
  private struct Driver {
    var dialogue: SetupDialogue
    var step: SetupDialogue.Step

    init(
      _ dialogue: SetupDialogue,
      found: [SetupCandidate] = [SetupDialogueTests.zugev, SetupDialogueTests.zutip]
    ) {
      self.dialogue = dialogue
      step = self.dialogue.start()
      if step == .scan { step = self.dialogue.found(found) }
    }

    /// The last question.
    var question: SetupQuestion? { if case .ask(let question) = step { question } else { nil } }
    var topic: SetupTopic? { question?.topic }

    mutating func answer(_ answers: String...) {
      for answer in answers { step = dialogue.answer(answer) }
    }

    /// Accepts the presets up to this question.
    mutating func go(to topic: SetupTopic) throws {
      for _ in 0..<50 where self.topic != topic {
        if case .tryBroker = step { step = dialogue.brokerTried([]) } else { answer("") }
      }
      try #require(self.topic == topic, "\(step)")
    }

    /// The configuration to try the broker with.
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

  private func driver(
    _ present: PresentConfiguration? = nil,
    found: [SetupCandidate] = [SetupDialogueTests.zugev, SetupDialogueTests.zutip],
    given: [SetupTopic: String] = [:], isUnattended: Bool = false
  ) throws -> Driver {
    let dialogue = SetupDialogue(
      try present ?? self.present(), backup: "config.json.bak", given: given, isUnattended: isUnattended)
    return Driver(dialogue, found: found)
  }

  // MARK: From beginning to end

  @Test func newConfigurationIsWritten() throws {
    var driver = try driver()
    let list = try #require(driver.question).lines.joined(separator: "\n")
    #expect(list.contains("1  BBC micro:bit [zugev]  C5:A1:B2:C3:D4:E5  -53 dBm, strong"))
    #expect(list.contains("2  BBC micro:bit [zutip]  D0:5A:00:00:C0:DE  -77 dBm, good"))
    driver.answer("all", "Kitchen window", "Kitchen", "", "")
    #expect(driver.topic == .pairing)
    driver.answer("")
    #expect(driver.topic == .later)
    driver.answer("", "broker.local", "n", "", "gateway")
    #expect(driver.question?.isSecret == true)
    driver.answer(" secret ")
    let configuration = try driver.configurationToTry()
    #expect(configuration.mqtt.host == "broker.local" && configuration.mqtt.port == 1883)
    // A password may begin or end with a space.
    #expect(configuration.mqtt.username == "gateway" && configuration.mqtt.password == Array(" secret ".utf8))
    driver.step = driver.dialogue.brokerTried([])
    #expect(driver.topic == .confirmation)
    driver.answer("y")
    guard case .write(let plan) = driver.step else {
      Issue.record("\(driver.step)")
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
            {"match":{"identifier":"D0:5A:00:00:C0:DE"},"id":"zutip"}
          ]
        }

        """)
    #expect(driver.dialogue.written(.absent) == .end(driver.dialogue.closing))
  }

  @Test func pathWithASpaceIsQuotedForTheShell() throws {
    let present = PresentConfiguration(path: "/tmp/my folder/config.json")
    var dialogue = SetupDialogue(present, backup: "b", program: ".build/release/microbit-gateway")
    #expect(
      dialogue.written(.absent)
        == .end([
          "Start the gateway with: .build/release/microbit-gateway run --config '/tmp/my folder/config.json'"
        ]))
  }

  @Test func aRunningGatewayIsToBeEndedFirst() throws {
    var dialogue = SetupDialogue(try present(), backup: "b")
    guard case .end(let lines) = dialogue.written(.absent, isRunning: true) else { return }
    #expect(lines.joined().hasPrefix("A gateway is running: to use this, end that one, and start it with: "))
  }

  /// Someone who answers questions has not seen the keys of config.json.
  @Test func remediesNameNoKeys() {
    #expect(
      SetupBroker.inWords("check mqtt.port, mqtt.tls.ca_file, and that mqtt.host is in it")
        == "check the port, the CA certificate, and that the broker's name is in it")
    #expect(
      SetupBroker.inWords("check mqtt.port and mqtt.tls") == "check the port and whether it needs TLS")
  }

  @Test func theServiceIsStartedOrRestarted() throws {
    for (state, isRestart) in [(ServiceUnit.State.stopped, false), (.running, true)] {
      var driver = try driver()
      driver.step = driver.dialogue.written(state)
      #expect(driver.topic == .service)
      driver.answer("maybe")
      #expect(driver.question?.lines == ["Please answer y (yes) or n (no)."])
      var other = driver
      other.answer("n")
      #expect(
        other.step
          == .end([
            isRestart
              ? "The running gateway uses this after: sudo systemctl restart microbit-gateway"
              : "Start the gateway with: sudo systemctl enable --now microbit-gateway"
          ]))
      driver.answer("")
      #expect(driver.step == .useService(restart: isRestart))
    }
  }

  @Test func nothingIsWrittenWithoutConfirmation() throws {
    var driver = try driver()
    try driver.go(to: .confirmation)
    driver.answer("n")
    #expect(driver.step == .end(["Nothing was changed."]))
  }

  // MARK: Invalid answers

  private static let wrong: [(SetupTopic, String, String)] = [
    (.devices, "3", "The list has the numbers 1 to 2."), (.devices, "0", "The list has the numbers 1 to 2."),
    (.devices, "the first", "is not a number"), (.devices, "2-1", "is not a number"),
    (.devices, "1-", "is not a number"), (.devices, ",", "choose one at least"),
    (.devices, "99999999999999999999", "is not a number"), (.devices, "none", "is not a number"),
    (.name(0), "a\u{7}b", "control character"), (.area(0), "a\u{1B}b", "control character"),
    (.later, "perhaps", "y (yes) or n (no)"), (.host, "mqtt://broker", "is not a host name"),
    (.host, "broker:1883", "the host alone; the port is asked for later."),
    (.host, "my broker", "white space"),
    (.host, "1884", "the port is asked for later"), (.pairing, "perhaps", "y (yes) or n (no)"),
    (.tls, "1", "y (yes) or n (no)"), (.port, "0", "1 to 65535"), (.port, "65536", "1 to 65535"),
    (.port, "mqtt", "1 to 65535"), (.username, "a\u{7}", "control character"),
    (.confirmation, "x", "y (yes) or n (no)"),
  ]

  @Test(arguments: wrong)
  func invalidAnswerRepeatsTheQuestionWithTheReason(topic: SetupTopic, answer: String, reason: String) throws
  {
    var driver = try driver()
    try driver.go(to: topic)
    let before = driver.question
    driver.answer(answer)
    #expect(driver.topic == topic && driver.question?.prompt == before?.prompt)
    #expect(driver.question?.lines.joined().contains(reason) == true, "\(driver.step)")
    // The question can still be answered.
    driver.answer("")
    #expect(driver.topic != topic)
  }

  @Test func namesWithTheSameIDAreRefused() throws {
    var driver = try driver()
    driver.answer("all", "Kitchen", "")
    #expect(driver.topic == .name(1))
    driver.answer("kitchen!")
    #expect(driver.topic == .name(1))
    #expect(
      driver.question?.lines == [
        #""kitchen" is already the name of the micro:bit C5:A1:B2:C3:D4:E5 in topics: choose another name."#
      ])
    driver.answer("c5a1b2c3d4e5")
    #expect(
      driver.topic == .area(1), "the first micro:bit's address is free, because its id is kitchen")
  }

  @Test func idInTheExistingFileIsRefused() throws {
    let file = #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:EE"},"id":"kitchen"}]}"#
    var driver = try driver(present(file), found: [Self.zugev])
    driver.answer("1", "Kitchen")
    #expect(driver.topic == .name(0))
    #expect(
      driver.question?.lines.first?.contains("already the name of the micro:bit C5:A1:B2:C3:D4:EE") == true)
  }

  @Test(arguments: [
    ("Küche am Fenster", "kueche-am-fenster"), ("Hall", "hall"), ("Café", "cafe"), ("Straße 5", "strasse-5"),
    // The letters of its Bluetooth name, as these cannot be part of an MQTT topic.
    ("台所", "zugev"), ("All", "zugev"),
  ])
  func idFollowsFromTheName(name: String, id: String) throws {
    var driver = try driver(found: [Self.zugev])
    driver.answer("1", name)
    #expect(driver.topic == .area(0))
    try driver.go(to: .confirmation)
    driver.answer("")
    let entry = try #require(try driver.document()["devices"]?.elements.first)
    #expect(entry["id"] == .string(id) && entry["name"] == .string(name))
  }

  @Test func theListIsSortedByName() throws {
    let nameless = SetupCandidate(
      address: BluetoothAddress(truncating: 0xE7A0_0000_0001), name: nil, signal: nil)
    let (first, second) = try (
      driver(found: [Self.zutip, nameless, Self.zugev]), driver(found: [Self.zugev, Self.zutip, nameless])
    )
    #expect(first.question == second.question)
    let list = try #require(first.question).lines.filter { !$0.isEmpty }
    #expect(
      ["E7:A0", "zugev", "zutip"].indices.allSatisfy { list[$0].contains(["E7:A0", "zugev", "zutip"][$0]) })
  }

  // MARK: Pairing

  @Test func pairingIsWrittenIntoTheEntriesOfTheChosen() throws {
    var driver = try driver(present(Self.file, password: "old"))
    driver.answer("all", "", "", "", "")
    #expect(driver.topic == .pairing && driver.question?.preset == "n")
    driver.answer("y")
    try driver.go(to: .confirmation)
    driver.answer("y")
    #expect(
      try driver.document()["devices"]?.elements == [
        [
          "match": ["identifier": "C5:A1:B2:C3:D4:E5"], "id": "hall", "period": .integer(5000),
          "pair": .bool(true),
        ],
        ["match": ["identifier": "D0:5A:00:00:C0:DE"], "id": "zutip", "pair": .bool(true)],
        ["match": ["name_prefix": "BBC micro:bit"]],
      ])
  }

  @Test func whatIsConfiguredAboutPairingIsNotAsked() throws {
    let file = Self.file.replacing(#""period": 5000"#, with: #""pair": false"#)
    var driver = try driver(present(file, password: "old"))
    driver.answer("1", "", "")
    #expect(driver.topic == .later)
    driver = try self.driver(present(file, password: "old"))
    driver.answer("none")
    #expect(driver.topic == .later)
    driver = try self.driver(present(file, password: "old"))
    driver.answer("all", "", "", "", "", "y")
    try driver.go(to: .confirmation)
    driver.answer("y")
    let entries = try #require(try driver.document()["devices"]).elements
    #expect(entries.map { $0["pair"] } == [.bool(false), .bool(true), nil])
  }

  // MARK: No micro:bit

  @Test func withoutAMicrobitScanIsRepeatedOrAllAreUsed() throws {
    var driver = try driver(found: [])
    #expect(
      driver.topic == .devices && driver.question?.lines.joined().contains("No micro:bit was found") == true)
    driver.answer("1")
    #expect(driver.question?.lines == ["Please answer again or every."])
    driver.answer("")
    #expect(driver.topic == .devices)
    driver.answer("again")
    #expect(driver.step == .scan)
    driver.step = driver.dialogue.found([])
    driver.answer("every")
    #expect(driver.topic == .host)
    try driver.go(to: .confirmation)
    driver.answer("")
    #expect(try driver.document()["devices"] == [SetupDocument.every])
  }

  @Test func bluetoothErrorIsShown() throws {
    var driver = try driver(found: [])
    driver.answer("again")
    driver.step = driver.dialogue.scanFailed("cannot use Bluetooth: the adapter is off")
    #expect(driver.question?.lines.contains("cannot use Bluetooth: the adapter is off") == true)
  }

  // MARK: The broker

  @Test func brokerErrorOffersRetryChangeOrKeep() throws {
    var driver = try driver(found: [Self.zugev])
    driver.answer("1", "", "", "", "", "", "", "", "gateway", "wrong")
    guard case .tryBroker = driver.step else {
      Issue.record("\(driver.step)")
      return
    }
    driver.step = driver.dialogue.brokerTried(["the broker rejected the login"])
    #expect(driver.topic == .brokerTrouble && driver.question?.lines == ["the broker rejected the login"])
    driver.answer("")
    #expect(driver.topic == .brokerTrouble)
    driver.answer("t")
    guard case .tryBroker = driver.step else {
      Issue.record("\(driver.step)")
      return
    }
    driver.step = driver.dialogue.brokerTried(["the broker rejected the login"])
    var kept = driver
    kept.answer("k")
    #expect(kept.topic == .confirmation)
    driver.answer("c")
    #expect(driver.topic == .host)
    driver.answer("", "", "", "")
    #expect(driver.topic == .password && driver.question?.prompt.contains("as before") == true)
    driver.answer("right")
    let configuration = try driver.configurationToTry()
    #expect(configuration.mqtt.username == "gateway" && configuration.mqtt.password == Array("right".utf8))
  }

  /// As with --password-file, for a user that the existing file does not have.
  @Test func givenPasswordIsUsedForAGivenUser() throws {
    let dialogue = SetupDialogue(
      try present(), backup: "b", given: [.username: "gateway"], password: .typed(Array("secret".utf8)),
      isUnattended: true)
    let driver = Driver(dialogue, found: [Self.zugev])
    let configuration = try driver.configurationToTry()
    #expect(configuration.mqtt.username == "gateway" && configuration.mqtt.password == Array("secret".utf8))
  }

  @Test func certificateUnreadableForTheServiceIsRefused() throws {
    let dialogue = SetupDialogue(
      try present(), backup: "b", isReadable: { $0.hasPrefix("/etc/") })
    var driver = Driver(dialogue, found: [Self.zugev])
    try driver.go(to: .tls)
    driver.answer("y", "/root/ca.pem")
    #expect(
      driver.topic == .caFile
        && driver.question?.lines.first?.contains("sudo install -m 600 -o microbit-gateway /root/ca.pem")
          == true
    )
    driver.answer("/etc/microbit-gateway/ca.pem")
    #expect(driver.topic == .port)
  }

  @Test func tlsChangesTheDefaultPort() throws {
    var driver = try driver(found: [Self.zugev])
    try driver.go(to: .tls)
    driver.answer("y", "/etc/ssl/ca.pem")
    #expect(driver.question?.preset == "8883")
    try driver.go(to: .confirmation)
    driver.answer("")
    let mqtt = try #require(try driver.document()["mqtt"])
    #expect(mqtt["port"] == .integer(8883) && mqtt["tls"] == ["ca_file": "/etc/ssl/ca.pem"])
  }

  // MARK: An existing file

  private static let file = #"""
    { "$schema": "s", "gateway": { "id": "attic" },
      "mqtt": { "host": "old", "base_topic": "home", "username": "u", "password_file": "secret" },
      "devices": [ { "match": { "identifier": "C5:A1:B2:C3:D4:E5" }, "id": "hall", "period": 5000 },
        { "match": { "name_prefix": "BBC micro:bit" } } ],
      "profiles": {} }
    """#

  @Test func keysWithoutAQuestionAreKept() throws {
    var driver = try driver(present(Self.file, password: "old"))
    #expect(
      driver.question?.preset == "1" && driver.question?.lines.joined().contains("configured as hall") == true
    )
    driver.answer("all", "", "", "Bedroom", "", "", "", "new")
    try driver.go(to: .confirmation)
    let shown = try #require(driver.question).lines
    #expect(shown.contains(#"  -     "host": "old","#) && shown.contains(#"  +     "host": "new","#))
    #expect(shown.contains("The present file is kept as config.json.bak."))
    driver.answer("y")
    let document = try driver.document()
    guard case .object(let object) = document else { return }
    #expect(object.names == ["$schema", "gateway", "mqtt", "devices", "profiles"])
    let mqtt = try #require(document["mqtt"])
    #expect(mqtt["base_topic"] == "home" && mqtt["password_file"] == "secret" && mqtt["host"] == "new")
    // The new entry is before the one for every micro:bit, which would match first.
    #expect(
      document["devices"]?.elements == [
        ["match": ["identifier": "C5:A1:B2:C3:D4:E5"], "id": "hall", "period": .integer(5000)],
        ["match": ["identifier": "D0:5A:00:00:C0:DE"], "id": "bedroom", "name": "Bedroom"],
        ["match": ["name_prefix": "BBC micro:bit"]],
      ])
  }

  @Test func theSameAnswersChangeNothing() throws {
    let file = Self.file.replacing(#""host": "old","#, with: #""host": "old", "port": 1883,"#)
    var driver = try driver(present(file, password: "old"))
    for _ in 0..<20 {
      if case .tryBroker = driver.step { driver.step = driver.dialogue.brokerTried([]) }
      if case .write(let plan) = driver.step {
        #expect(plan.isEmpty)
        return
      }
      driver.answer("")
    }
    Issue.record("\(driver.step)")
  }

  @Test func newPasswordIsWrittenToTheExistingFile() throws {
    var driver = try driver(present(Self.file, password: "old"))
    try driver.go(to: .password)
    driver.answer("new")
    try driver.go(to: .confirmation)
    driver.answer("")
    guard case .write(let plan) = driver.step else {
      Issue.record("\(driver.step)")
      return
    }
    #expect(plan.password == Array("new".utf8) && plan.passwordFile == "secret")
  }

  @Test func newUserNameDropsTheOldPassword() throws {
    var driver = try driver(present(Self.file, password: "old"))
    try driver.go(to: .username)
    driver.answer("other")
    #expect(driver.topic == .password && driver.question?.prompt.contains("as before") == false)
    driver.answer("")
    let configuration = try driver.configurationToTry()
    #expect(configuration.mqtt.password == nil && configuration.mqtt.passwordFile == nil)
  }

  // MARK: Options instead of questions

  @Test func givenOptionsSkipTheirQuestions() throws {
    var driver = try driver(given: [.host: "broker", .port: "8883", .username: "u"])
    driver.answer("1", "", "", "", "")
    #expect(driver.topic == .tls && driver.question?.preset == "y")
    driver.answer("", "")
    #expect(driver.topic == .password)
  }

  private static let wrongOptions: [(SetupTopic, String, String)] = [
    (.host, "mqtt://x", "--broker: "), (.port, "99999", "--port: "), (.username, "a\u{7}", "--username: "),
  ]

  @Test(arguments: wrongOptions)
  func invalidOptionsAreUsageErrors(topic: SetupTopic, text: String, reason: String) throws {
    let driver = try driver(given: [topic: text], isUnattended: true)
    guard case .fail(let failure) = driver.step else {
      Issue.record("\(driver.step)")
      return
    }
    #expect(failure.status == .usage && failure.text.hasPrefix(reason))
  }

  @Test func unattendedSetupUsesAllFoundMicrobits() throws {
    var driver = try driver(isUnattended: true)
    let configuration = try driver.configurationToTry()
    #expect(configuration.devices.map { $0.id?.description } == ["zugev", "zutip"])
    driver.step = driver.dialogue.brokerTried([])
    _ = try driver.document()
    #expect(driver.dialogue.written(.stopped) == .useService(restart: false))
  }

  @Test func unattendedSetupFailsInsteadOfAsking() throws {
    let nobody = try driver(found: [], isUnattended: true)
    guard case .fail(let failure) = nobody.step else {
      Issue.record("\(nobody.step)")
      return
    }
    #expect(failure.status == .unavailable && failure.text.contains("--device"))
    var refused = try driver(isUnattended: true)
    refused.step = refused.dialogue.brokerTried(["the broker rejected the login"])
    guard case .fail(let failure) = refused.step else {
      Issue.record("\(refused.step)")
      return
    }
    #expect(failure.status == .unavailable && failure.text.contains("rejected the login"))
  }

  @Test func commandLineDevicesAreWritten() throws {
    var setup = Setup()
    setup.devices = ["C5:A1:B2:C3:D4:E5=Kitchen window,Kitchen", "d05a0000c0de"]
    setup.usesAll = true
    setup.isUnattended = true
    setup.triesBroker = false
    var dialogue = try setup.dialogue(try present(), backup: "b")
    #expect(dialogue.start() == .scan, "the addresses are looked for")
    guard case .write(let plan) = dialogue.found([]), let text = plan.text else {
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
