import Configuration
import EventLoop
import GATT
import JSON
import TestSupport
import Testing

@testable import Gateway

/// The dialogue of `init`, without terminal, Bluetooth and broker.
@LoopActor @Suite struct SetupInterviewTests {
  private typealias Found = (address: UInt64, name: String?, signal: Int?)
  private nonisolated static let zugev: Found = (0xC5A1_B2C3_D4E5, "BBC micro:bit [zugev]", -53)
  private nonisolated static let zutip: Found = (0xD05A_0000_C0DE, "BBC micro:bit [zutip]", -77)

  /// What a dialogue has asked, and what came of it.
  private final class Outcome {
    var asked: [SetupQuestion] = []
    var tried: [Configuration] = []
    var scans = 0
    var unblocked = 0
    /// Nil: nothing is to be written.
    var plan: SetupPlan?
    var failure: CommandFailure?

    /// The questions whose prompt begins like this, in order.
    func questions(_ prompt: String) -> [SetupQuestion] { asked.filter { $0.begins(with: prompt) } }

    func document() throws -> JSONValue {
      try JSONParser.parse(Array(try #require(plan?.text, "\(String(describing: failure))").utf8))
    }

    func entries() throws -> [JSONValue] { try document()["devices"]?.elements ?? [] }
  }

  /// - Parameters:
  ///   - isBlocked: whether programs block Bluetooth until that is ended.
  ///   - found: by each scan.
  ///   - trouble: with the broker, at each trial.
  ///   - answers: to questions whose prompts begin like this, each once; the others are answered by Enter.
  private func dialogue(
    _ present: PresentConfiguration = PresentConfiguration(path: "/tmp/config.json"),
    _ setup: Setup = Setup(), isBlocked: Bool = false, found: [[Found]] = [[zutip, zugev]],
    problem: String? = nil,
    trouble: [[String]] = [], isReadable: @escaping (String) -> Bool = { _ in true },
    answering answers: KeyValuePairs<String, String> = [:]
  ) async throws -> Outcome {
    let outcome = Outcome()
    var known = try setup.answers(present)
    known.isReadable = isReadable
    var rest = Array(answers)
    var interview = SetupInterview(
      answers: known, isUnattended: setup.isUnattended, triesBroker: !setup.has("--no-test"),
      backup: "config.json.bak",
      reply: { question in
        outcome.asked.append(question)
        // The input ends rather than that a question is repeated for ever.
        if outcome.asked.count > 50 { return nil }
        guard let index = rest.firstIndex(where: { question.begins(with: $0.key) }) else { return "" }
        return rest.remove(at: index).value
      },
      isBlocked: { isBlocked && outcome.unblocked == 0 },
      unblock: { outcome.unblocked += 1 },
      scan: { _ in
        defer { outcome.scans += 1 }
        return (
          found[min(outcome.scans, found.count - 1)].map {
            SetupDevice(
              BluetoothAddress(truncating: $0.address), name: $0.name, signal: $0.signal, in: present)
          }, problem
        )
      },
      tryBroker: { configuration in
        outcome.tried.append(configuration)
        return outcome.tried.count <= trouble.count ? trouble[outcome.tried.count - 1] : []
      })
    do throws(CommandFailure) {
      outcome.plan = try await interview.plan()
    } catch {
      outcome.failure = error
    }
    #expect(rest.isEmpty, "not asked: \(rest)")
    return outcome
  }

  private func present(_ text: String, password: String? = "old") throws -> PresentConfiguration {
    var present = PresentConfiguration(path: "/tmp/config.json")
    (present.configuration, present.document) = try ConfigurationFile.parse(Array(text.utf8), in: "/tmp")
    present.password = password.map { Array($0.utf8) }
    return present
  }

  private func unattended(_ options: [String: [String]] = [:]) -> Setup {
    Setup(options.merging(["--yes": [""]]) { $1 })
  }

  // MARK: From beginning to end

  @Test func newConfigurationIsWritten() async throws {
    let outcome = try await dialogue(answering: [
      "Which": "all", "Name": "Kitchen window", "Area": "Kitchen", "Broker": "broker.local",
      "User": "gateway",
      "Password": " secret ",
    ])
    let list = try #require(outcome.asked.first).lines
    #expect(list.contains("  1  BBC micro:bit [zugev]  C5:A1:B2:C3:D4:E5  -53 dBm, strong"))
    #expect(list.contains("  2  BBC micro:bit [zutip]  D0:5A:00:00:C0:DE  -77 dBm, good"))
    #expect(outcome.asked.filter(\.isSecret).map(\.prompt) == ["Password (is not shown)"])
    let mqtt = try #require(outcome.tried.first).mqtt
    #expect(mqtt.host == "broker.local" && mqtt.port == 1883 && mqtt.username == "gateway")
    // A password may begin or end with a space.
    #expect(mqtt.password == Array(" secret ".utf8))
    #expect(
      outcome.plan
        == SetupPlan(
          text: """
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

            """, password: Array(" secret ".utf8), passwordFile: "mqtt-password"))
  }

  @Test func blockedBluetoothIsTurnedOnIfAgreed() async throws {
    let prompt = "Turn Bluetooth on now?"
    let agreed = try await dialogue(isBlocked: true)
    #expect(agreed.unblocked == 1 && agreed.questions(prompt).count == 1 && agreed.plan != nil)
    #expect(agreed.asked.first?.begins(with: prompt) == true)
    // Asked before each search, until it is agreed.
    let late = try await dialogue(
      isBlocked: true, found: [[]], answering: [prompt: "n", "What now?": "again"])
    #expect(late.unblocked == 1 && late.questions(prompt).count == 2 && late.scans > 1)
    #expect(try await dialogue(isBlocked: true, answering: [prompt: "n"]).unblocked == 0)
    #expect(
      try await dialogue(
        PresentConfiguration(path: "/tmp/config.json"), unattended(["--all": [""]]), isBlocked: true
      ).unblocked == 1)
  }

  @Test func nothingIsWrittenWithoutConfirmation() async throws {
    let outcome = try await dialogue(answering: ["Write this?": "n"])
    #expect(outcome.plan == nil && outcome.failure == nil)
  }

  @Test func theEndSaysHowToUseTheConfiguration() {
    let path = "/tmp/my folder/config.json"
    let run = "./microbit-gateway run --config '/tmp/my folder/config.json'"
    for (service, isRunning, text) in [
      (ServiceUnit.State.absent, false, "Start the gateway with: \(run)"),
      (.absent, true, "A gateway is running: to use this, end that one, and start it with: \(run)"),
      (.stopped, false, "Start the gateway with: sudo systemctl enable --now microbit-gateway"),
      (.running, true, "The running gateway uses this after: sudo systemctl restart microbit-gateway"),
    ] {
      #expect(Setup.closing(service, path, program: "./microbit-gateway", isRunning: isRunning) == text)
    }
  }

  /// Someone who answers questions has not seen the keys of config.json.
  @Test func remediesNameNoKeys() {
    #expect(
      Setup.inWords("check mqtt.port, mqtt.tls.ca_file, and that mqtt.host is in it")
        == "check the port, the CA certificate, and that the broker's name is in it")
    #expect(Setup.inWords("check mqtt.port and mqtt.tls") == "check the port and whether it needs TLS")
  }

  // MARK: Invalid answers

  private nonisolated static let wrong: [(String, String, String)] = [
    ("Which", "3", "numbers 1 to 2"), ("Which", "0", "numbers 1 to 2"),
    ("Which", "the first", "numbers 1 to 2"),
    ("Which", "2-1", "numbers 1 to 2"), ("Which", "1-", "numbers 1 to 2"), ("Which", ",", "numbers 1 to 2"),
    ("Which", "99999999999999999999", "numbers 1 to 2"),
    ("Name", "a\u{7}b", "control character"), ("Area", "a\u{1B}b", "control character"),
    ("Broker", "mqtt://broker", "is not a host name"),
    ("Broker", "broker:1883", "the host alone; the port is asked for later."),
    ("Broker", "my broker", "white space"), ("Broker", "1884", "the port is asked for later"),
    ("Does it", "1", "y (yes) or n (no)"),
    ("Port", "0", "1 to 65535"), ("Port", "65536", "1 to 65535"), ("Port", "mqtt", "1 to 65535"),
    ("User", "a\u{7}", "control character"), ("Write", "x", "y (yes) or n (no)"),
  ]

  @Test(arguments: wrong)
  func invalidAnswerRepeatsTheQuestionWithTheReason(prompt: String, answer: String, reason: String)
    async throws
  {
    let outcome = try await dialogue(
      answering: prompt == "Which" ? ["Which": answer] : ["Which": "1", prompt: answer])
    let questions = outcome.questions(prompt)
    try #require(questions.count == 2, "\(questions)")
    #expect(questions[1].lines.joined().contains(reason), "\(questions[1].lines)")
    #expect(questions[0].prompt == questions[1].prompt && outcome.plan != nil)
  }

  @Test func namesWithTheSameIDAreRefused() async throws {
    let outcome = try await dialogue(answering: [
      "Name": "Kitchen", "Name": "kitchen!", "Name": "c5a1b2c3d4e5",
    ])
    #expect(
      outcome.questions("Name").last?.lines == [
        #""kitchen" is already the name of the micro:bit C5:A1:B2:C3:D4:E5 in topics: choose another name."#
      ])
    // The first micro:bit's address is free, because its id is kitchen.
    #expect(try outcome.entries().map { $0["id"] } == ["kitchen", "c5a1b2c3d4e5"])
    let file = #"{"devices":[{"match":{"identifier":"C5:A1:B2:C3:D4:EE"},"id":"kitchen"}]}"#
    let other = try await dialogue(
      present(file), answering: ["Which": "1", "Name": "Kitchen", "Name": "Hall"])
    #expect(
      other.questions("Name").last?.lines.first?.contains(
        "already the name of the micro:bit C5:A1:B2:C3:D4:EE")
        == true)
  }

  @Test(arguments: [
    ("Küche am Fenster", "kueche-am-fenster"), ("Hall", "hall"), ("Café", "cafe"), ("Straße 5", "strasse-5"),
    ("台所", "台所"),
    // The letters of its Bluetooth name, as these names cannot be an id.
    ("🌡", "zugev"), ("All", "zugev"),
  ])
  func idFollowsFromTheName(name: String, id: String) async throws {
    let entry = try #require(try await dialogue(answering: ["Which": "1", "Name": name]).entries().first)
    #expect(entry["id"] == .string(id) && entry["name"] == .string(name))
  }

  @Test func microbitsAreChosenByNumbersInTheOrderOfTheAnswer() async throws {
    for (answer, ids) in [("2,1", ["zutip", "zugev"]), ("1-2", ["zugev", "zutip"]), ("2 2", ["zutip"])] {
      #expect(try await dialogue(answering: ["Which": answer]).entries().map { $0["id"]?.text } == ids)
    }
  }

  @Test func theListIsSortedByName() async throws {
    let outcome = try await dialogue(found: [[Self.zutip, (0xE7A0_0000_0001, nil, nil), Self.zugev]])
    let list = try #require(outcome.asked.first).lines.filter { $0.contains("  ") }
    #expect(zip(list, ["E7:A0", "zugev", "zutip"]).allSatisfy { $0.contains($1) } && list.count == 3)
  }

  @Test func namesAndAreasAreAskedForAndThenTheBroker() async throws {
    let prompts = try await dialogue().asked.map { $0.prompt.split(separator: " ").first }
    #expect(prompts.prefix(6) == ["Which", "Name,", "Area,", "Name", "Area", "Broker"])
  }

  @Test func rowShowsTheSignalOfAConnectedOne() {
    let present = PresentConfiguration(path: "/tmp/config.json")
    let address = BluetoothAddress(truncating: 0xC5A1_B2C3_D4E5)
    for (signal, isConnected, text) in [
      (-77, true, "-77 dBm, good, connected"), (nil, true, "connected"), (-90, false, "-90 dBm, weak"),
    ] as [(Int?, Bool, String)] {
      #expect(SetupDevice(address, signal: signal, isConnected: isConnected, in: present).row[2] == text)
    }
  }

  // MARK: Others

  /// The class next door is not used unless someone has said so.
  @Test func othersAreUsedOnlyIfTheyWereChosen() async throws {
    let installed = try present(#"{"devices":[{"match":{"name_prefix":"BBC micro:bit"}}]}"#)
    let all = try await dialogue(installed, answering: ["Which": "all"])
    #expect(try all.entries().map { $0["id"] } == ["zugev", "zutip"] && all.questions("Also").isEmpty)
    let every = try await dialogue(installed, answering: ["Which": "every"])
    #expect(try every.entries().last == .everyMicrobit && every.entries().count == 3)
    #expect(try await dialogue(installed, answering: ["Which": "none"]).entries() == [])
    let later = try await dialogue(found: [[]], answering: ["What now?": "none"])
    #expect(try later.entries() == [] && later.plan != nil)
    // By an earlier choice.
    let file = try present(Self.file)
    #expect(try await dialogue(file).questions("Also use").first?.preset == "y")
    let alone = try await dialogue(file, answering: ["Also use": "perhaps", "Also use": "n"])
    #expect(try alone.entries().map { $0["id"] } == ["hall"])
  }

  // MARK: No micro:bit

  @Test func withoutAMicrobitScanIsRepeatedOrAllAreUsed() async throws {
    let outcome = try await dialogue(
      found: [[]], answering: ["What now?": "1", "What now?": "again", "What now?": "every"])
    let questions = outcome.questions("What now?")
    #expect(questions[0].lines.joined().contains("No micro:bit was found"))
    #expect(questions[1].lines == ["Please answer again, every or none."] && outcome.scans == 2)
    #expect(try outcome.questions("Also use").isEmpty && outcome.entries() == [.everyMicrobit])
    // A person has to answer.
    #expect(try await dialogue(found: [[]]).failure?.text.contains("nothing was changed") == true)
  }

  @Test func bluetoothErrorIsShown() async throws {
    let problem = "cannot use Bluetooth: the adapter is off"
    let outcome = try await dialogue(found: [[]], problem: problem, answering: ["What now?": "every"])
    #expect(outcome.asked.first?.lines.contains(problem) == true)
  }

  // MARK: The broker

  @Test func brokerErrorOffersRetryChangeOrKeep() async throws {
    let rejected = ["the broker rejected the login"]
    let login: KeyValuePairs = [
      "User": "gateway", "Password": "wrong", "t = try": "", "t = try": "t", "t = try": "c",
      "Password": "right",
    ]
    let outcome = try await dialogue(trouble: [rejected, rejected], answering: login)
    let questions = outcome.questions("t = try")
    #expect(questions.map(\.lines) == [rejected, ["Please answer t, c or k."], rejected])
    #expect(outcome.questions("Password").last?.prompt.contains("as before") == true)
    #expect(
      outcome.tried.map(\.mqtt.password) == ["wrong", "wrong", "right"].map { Array($0.utf8) })
    #expect(outcome.tried.last?.mqtt.username == "gateway")
    let kept = try await dialogue(trouble: [rejected], answering: ["t = try": "k"])
    #expect(kept.plan != nil && kept.tried.count == 1)
  }

  @Test func certificateUnreadableForTheServiceIsRefused() async throws {
    let outcome = try await dialogue(
      isReadable: { $0.hasPrefix("/etc/") },
      answering: ["Does it": "y", "File with": "/root/ca.pem", "File with": "/etc/microbit-gateway/ca.pem"])
    let reason = outcome.questions("File with").last?.lines.first
    #expect(reason?.contains("sudo install -m 600 -o microbit-gateway /root/ca.pem") == true)
    #expect(try outcome.document()["mqtt"]?["tls"] == ["ca_file": "/etc/microbit-gateway/ca.pem"])
  }

  @Test func tlsChangesTheDefaultPort() async throws {
    let outcome = try await dialogue(answering: ["Does it": "y", "File with": "/etc/ssl/ca.pem"])
    let port = outcome.questions("Port").first
    let mqtt = try outcome.document()["mqtt"] ?? [:]
    #expect(port?.preset == "8883")
    #expect(mqtt["port"] == .integer(8883) && mqtt["tls"] == ["ca_file": "/etc/ssl/ca.pem"])
  }

  // MARK: An existing file

  private nonisolated static let file = #"""
    { "$schema": "s", "gateway": { "id": "attic" },
      "mqtt": { "host": "old", "base_topic": "home", "username": "u", "password_file": "secret" },
      "devices": [ { "match": { "identifier": "C5:A1:B2:C3:D4:E5" }, "id": "hall", "period": 5000 },
        { "match": { "name_prefix": "BBC micro:bit" } } ],
      "profiles": {} }
    """#

  @Test func keysWithoutAQuestionAreKept() async throws {
    let outcome = try await dialogue(
      present(Self.file), answering: ["Which": "all", "Name": "", "Name": "Bedroom", "Broker": "new"])
    let list = try #require(outcome.asked.first)
    #expect(list.preset == "1" && list.lines.joined().contains("configured as hall"))
    let shown = try #require(outcome.questions("Write this?").first).lines
    #expect(
      shown.starts(with: [
        "", "Changes in /tmp/config.json:", "", #"  -     "host": "old","#, #"  +     "host": "new","#,
      ]))
    #expect(
      shown.contains(#"  +     "port": 1883"#) && !shown.contains { $0.hasSuffix(#""base_topic": "home","#) })
    #expect(shown.last == "The present file is kept as config.json.bak.")
    let document = try outcome.document()
    guard case .object(let object) = document else { return }
    #expect(object.names == ["$schema", "gateway", "mqtt", "devices", "profiles"])
    let mqtt = try #require(document["mqtt"])
    #expect(mqtt["base_topic"] == "home" && mqtt["password_file"] == "secret" && mqtt["host"] == "new")
    // The new entry is before the one for every micro:bit, which would match first.
    #expect(
      document["devices"]?.elements == [
        ["match": ["identifier": "C5:A1:B2:C3:D4:E5"], "id": "hall", "period": .integer(5000)],
        ["match": ["identifier": "D0:5A:00:00:C0:DE"], "id": "bedroom", "name": "Bedroom"],
        .everyMicrobit,
      ])
  }

  @Test func theSameAnswersChangeNothing() async throws {
    let file = Self.file.replacing(#""host": "old","#, with: #""host": "old", "port": 1883,"#)
    #expect(try await dialogue(present(file)).plan?.isEmpty == true)
  }

  @Test func newPasswordIsWrittenToTheExistingFile() async throws {
    let plan = try await dialogue(present(Self.file), answering: ["Password": "new"]).plan
    #expect(plan?.password == Array("new".utf8) && plan?.passwordFile == "secret")
  }

  @Test func newUserNameDropsTheOldPassword() async throws {
    let outcome = try await dialogue(present(Self.file), answering: ["User": "other"])
    #expect(outcome.questions("Password").first?.prompt == "Password (is not shown)")
    let mqtt = try #require(outcome.tried.first).mqtt
    #expect(mqtt.username == "other" && mqtt.password == nil && mqtt.passwordFile == nil)
  }

  // MARK: Options instead of questions

  @Test func thePageIsOffUnlessItIsWanted() async throws {
    let answered = try await dialogue(answering: ["Show them": "y"])
    #expect(answered.questions("Show them").first?.preset == "n")
    #expect(try answered.document()["http"] == ["enabled": .bool(true)])
    #expect(try await dialogue().document()["http"] == nil)
  }

  @Test func givenOptionsSkipTheirQuestions() async throws {
    let setup = Setup(["--broker": ["broker"], "--port": ["8883"], "--username": ["u"]])
    let outcome = try await dialogue(PresentConfiguration(path: "/tmp/config.json"), setup)
    let prompts = outcome.asked.map { $0.prompt.split(separator: " ").first }
    #expect(prompts.suffix(5) == ["Does", "File", "Password", "Show", "Write"])
    #expect(outcome.questions("Does it").first?.preset == "y" && outcome.tried.first?.mqtt.port == 8883)
  }

  @Test(arguments: [("--broker", "mqtt://x"), ("--port", "99999"), ("--username", "a\u{7}")])
  func invalidOptionsAreUsageErrors(option: String, text: String) async throws {
    let failure = try await dialogue(
      PresentConfiguration(path: "/tmp/config.json"), unattended([option: [text]])
    ).failure
    #expect(failure?.status == .usage && failure?.text.hasPrefix("\(option): ") == true)
  }

  @Test func unattendedSetupUsesAllFoundMicrobits() async throws {
    let outcome = try await dialogue(PresentConfiguration(path: "/tmp/config.json"), unattended())
    #expect(outcome.tried.first?.devices.map { $0.id?.description } == ["zugev", "zutip"])
    #expect(outcome.asked.isEmpty && outcome.plan?.text != nil)
  }

  @Test func unattendedSetupFailsInsteadOfAsking() async throws {
    let new = PresentConfiguration(path: "/tmp/config.json")
    let nobody = try await dialogue(new, unattended(), found: [[]]).failure
    #expect(nobody?.status == .unavailable && nobody?.text.contains("--device") == true)
    let refused = try await dialogue(new, unattended(), trouble: [["the broker rejected the login"]]).failure
    #expect(refused?.status == .unavailable && refused?.text.contains("rejected the login") == true)
  }

  /// For a user that the existing file does not have.
  @Test func givenPasswordIsUsedForAGivenUser() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("secret\n", to: "password")
    let setup = unattended(["--username": ["gateway"], "--password-file": [file]])
    let outcome = try await dialogue(present(Self.file), setup)
    #expect(outcome.tried.first?.mqtt.password == Array("secret".utf8))
    #expect(outcome.plan?.password == Array("secret".utf8) && outcome.plan?.passwordFile == "secret")
    #expect(throws: CommandFailure.self) {
      try Setup(["--password-file": [file]]).answers(PresentConfiguration(path: "/tmp/config.json"))
    }
  }

  @Test func commandLineDevicesAreWritten() async throws {
    let new = PresentConfiguration(path: "/tmp/config.json")
    let devices = ["C5:A1:B2:C3:D4:E5=Kitchen window,Kitchen", "d05a0000c0de"]
    let setup = unattended(["--device": devices, "--all": [""], "--no-test": [""]])
    let outcome = try await dialogue(new, setup, found: [[]])
    #expect(outcome.scans == 1, "the addresses are looked for")
    #expect(
      try outcome.entries() == [
        [
          "match": ["identifier": "C5:A1:B2:C3:D4:E5"], "id": "kitchen-window", "name": "Kitchen window",
          "area": "Kitchen",
        ],
        ["match": ["identifier": "D0:5A:00:00:C0:DE"]], .everyMicrobit,
      ])
    for devices in [["kitchen"], ["C5:A1:B2:C3:D4:E5", "c5a1b2c3d4e5=a"]] {
      #expect(throws: CommandFailure.self) { try Setup(["--device": devices]).answers(new) }
    }
  }
}

extension SetupQuestion {
  fileprivate func begins(with text: String) -> Bool {
    prompt.drop(while: \.isWhitespace).hasPrefix(text)
  }
}
