import Configuration
import EventLoop
import JSON
import TestSupport
import Testing

@testable import Gateway

/// The dialogue of `init`, without terminal and broker.
@LoopActor @Suite struct SetupInterviewTests {
  /// What a dialogue has asked, and what came of it.
  final class Outcome {
    var asked: [SetupQuestion] = []
    var tried: [Configuration] = []
    var plan: SetupPlan?
    var failure: CommandFailure?

    /// The questions whose prompt begins like this, in order.
    func questions(_ prompt: String) -> [SetupQuestion] { asked.filter { $0.begins(with: prompt) } }

    func document() throws -> JSONValue {
      try JSONParser.parse(Array(try #require(plan?.text, "\(String(describing: failure))").utf8))
    }

    func entries() throws -> [JSONValue] { try document()["devices"]?.elements ?? [] }
  }

  nonisolated static let new = PresentConfiguration(path: "/tmp/config.json")

  /// - Parameters:
  ///   - trouble: with the broker, at each trial.
  ///   - answers: to questions whose prompts begin like this, each once; the others are answered by Enter.
  func dialogue(
    _ present: PresentConfiguration = new, _ setup: Setup = Setup(), trouble: [[String]] = [],
    isReadable: @escaping (String) -> Bool = { _ in true },
    answering answers: KeyValuePairs<String, String> = [:]
  ) async throws -> Outcome {
    let outcome = Outcome()
    var known = try setup.answers(present)
    known.isReadable = isReadable
    var rest = Array(answers)
    var interview = SetupInterview(
      answers: known, given: try setup.given(present), isUnattended: setup.isUnattended,
      triesBroker: !setup.has("--no-test"),
      reply: { question in
        outcome.asked.append(question)
        // The input ends rather than that a question is repeated for ever.
        if outcome.asked.count > 50 { return nil }
        guard let index = rest.firstIndex(where: { question.begins(with: $0.key) }) else { return "" }
        return rest.remove(at: index).value
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

  func present(_ text: String, password: String? = "old") throws -> PresentConfiguration {
    var present = Self.new
    let file = try ConfigurationFile.parse(Array(text.utf8), at: present.path, filesMayBeAway: true)
    (present.configuration, present.document) = (file.configuration, file.document)
    present.configuration.mqtt.password = password.map { Array($0.utf8) }
    return present
  }

  func unattended(_ options: [String: [String]] = [:]) -> Setup {
    Setup(options: options.merging(["--yes": [""]]) { $1 })
  }

  // MARK: From beginning to end

  @Test func newConfigurationIsWritten() async throws {
    let outcome = try await dialogue(answering: [
      "Who": "network", "Password for": "correct horse", "Broker": "broker.local", "User": "gateway",
      "Password (": " secret ", "Which": "join", "Area": "Kitchen",
    ])
    #expect(outcome.asked.filter(\.isSecret).count == 2)
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
              "gateway": {
                "area": "Kitchen"
              },
              "http": {
                "enabled": true,
                "address": "::",
                "password_file": "http.password"
              },
              "devices": []
            }

            """,
          secrets: [
            "http.password": Array("correct horse".utf8), "mqtt-password": Array(" secret ".utf8),
          ]))
  }

  @Test func fourThingsAreAsked() async throws {
    let prompts = try await dialogue().asked.map { $0.prompt.split(separator: " ").first }
    #expect(prompts == ["Who", "Broker", "Does", "Port", "User", "Which", "Area"])
  }

  /// Someone who answers questions has not seen the keys of config.json.
  @Test func remediesNameNoKeys() {
    #expect(
      Setup.inWords("check mqtt.port, mqtt.tls.ca_file, and that mqtt.host is in it")
        == "check the port, the CA certificate, and that the broker's name is in it")
    #expect(Setup.inWords("check mqtt.port and mqtt.tls") == "check the port and whether it needs TLS")
    #expect(
      Setup.inWords("mqtt.hosts is for the nodes of one cluster")
        == "a list of brokers is for the nodes of one cluster")
  }

  @Test(
    "A broker may be given as other programs have it",
    arguments: [
      ("broker:1884", "broker", 1884, false), ("mqtt://broker", "broker", 1883, false),
      ("mqtts://broker:8884", "broker", 8884, true),
    ] as [(String, String, Int, Bool)])
  func brokerAddress(text: String, host: String, port: Int, isEncrypted: Bool) throws {
    var answers = SetupAnswers(PresentConfiguration(readingFrom: "/nowhere/config.json"))
    try answers.setHost(text)
    #expect(answers.mqtt["host"]?.text == host && answers.mqtt["port"]?.integer == port)
    #expect((answers.mqtt["tls"] != nil) == isEncrypted)
  }

  // MARK: Invalid answers

  private nonisolated static let wrong: [(String, String, String)] = [
    ("Who", "all", "one of: network / computer / nobody"), ("Which", "1", "one of: all / join"),
    ("Area", "a\u{1B}b", "control character"),
    ("Broker", "http://broker", "is not a host name"), ("Broker", "broker:0", "is below 1"),
    ("Broker", "my broker", "white space"), ("Broker", "1884", "is a number, not the name of a computer"),
    ("Broker", "install", "sudo apt install mosquitto"), ("Does it", "1", "one of: yes / no"),
    ("Port", "0", "1 to 65535"), ("Port", "65536", "1 to 65535"), ("Port", "mqtt", "1 to 65535"),
    ("User", "a\u{7}", "control character"),
  ]

  @Test(arguments: wrong)
  func invalidAnswerRepeatsTheQuestionWithTheReason(prompt: String, answer: String, reason: String)
    async throws
  {
    let outcome = try await dialogue(answering: [prompt: answer])
    let questions = outcome.questions(prompt)
    try #require(questions.count == 2, "\(questions)")
    #expect(questions[1].lines.joined().contains(reason), "\(questions[1].lines)")
    #expect(questions[0].prompt == questions[1].prompt && outcome.plan != nil)
  }

  @Test func passwordThatABrokerWouldGetCutIsRefused() async throws {
    let outcome = try await dialogue(
      answering: ["User": "gateway", "Password": "a\u{0}b", "Password": "ab"])
    let questions = outcome.questions("Password")
    #expect(questions.last?.lines == ["the password contains a control character"])
    #expect(outcome.tried.map(\.mqtt.password) == [Array("ab".utf8)])
  }

  // MARK: The page

  @Test func thePageIsOffUnlessItIsWanted() async throws {
    let computer = try await dialogue(answering: ["Who": "computer"])
    #expect(computer.questions("Who").first?.preset == "nobody")
    #expect(try computer.document()["http"] == ["enabled": .bool(true)])
    // That is a decision too: the gateway is not open for set-up in a browser.
    #expect(try await dialogue().document()["http"] == ["enabled": .bool(false)])
    #expect(try await dialogue(answering: ["Which": "join"]).document()["http"] == nil)
  }

  @Test func aPageForTheNetworkNeedsAPassword() async throws {
    let outcome = try await dialogue(answering: [
      "Who": "n", "Who": "network", "Password for": "", "Password for": "abc", "Password for": "abcd",
    ])
    #expect(outcome.questions("Password for").count == 3)
    #expect(outcome.plan?.secrets["http.password"] == Array("abcd".utf8))
    // A present one stays, unless another is typed.
    let file =
      #"{"http":{"enabled":true,"address":"192.168.1.2","password_file":"/root/p"},"mqtt":{"host":"a","port":1883},"devices":[]}"#
    #expect(try await dialogue(present(file)).plan?.isEmpty == true)
    let changed = try await dialogue(present(file), answering: ["Password for": "new one"])
    #expect(
      try changed.document()["http"] == [
        "enabled": .bool(true), "address": "192.168.1.2", "password_file": "http.password",
      ])
  }

  // MARK: The broker

  @Test func brokerErrorOffersRetryChangeOrKeep() async throws {
    let rejected = ["the broker rejected the login"]
    let login: KeyValuePairs = [
      "User": "gateway", "Password": "wrong", "What now?": "x", "What now?": "again", "What now?": "change",
      "Password": "right",
    ]
    let outcome = try await dialogue(trouble: [rejected, rejected], answering: login)
    let questions = outcome.questions("What now?")
    #expect(
      questions.map(\.lines) == [rejected, ["Please answer one of: again / change / keep."], rejected])
    #expect(outcome.questions("Password").last?.prompt.contains("keeps the present one") == true)
    #expect(
      outcome.tried.map(\.mqtt.password) == ["wrong", "wrong", "right"].map { Array($0.utf8) })
    let kept = try await dialogue(trouble: [rejected], answering: ["What now?": "keep"])
    #expect(kept.plan != nil && kept.tried.count == 1)
  }

  @Test func anotherBrokerChangesNoOtherOption() async throws {
    let setup = Setup(options: ["--broker": ["one"], "--device": ["d05a0000c0de"], "--area": ["Roof"]])
    let outcome = try await dialogue(
      Self.new, setup, trouble: [["nothing answers"]], answering: ["What now?": "change", "Broker": "two"])
    #expect(outcome.tried.map(\.mqtt.host) == ["one", "two"])
    #expect(outcome.questions("Which").isEmpty && outcome.questions("Area").isEmpty)
    #expect(try outcome.entries().count == 1)
    #expect(try outcome.document()["gateway"] == ["area": "Roof"])
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
    let mqtt = try outcome.document()["mqtt"] ?? [:]
    #expect(outcome.questions("Port").first?.preset == "8883")
    #expect(mqtt["port"] == .integer(8883) && mqtt["tls"] == ["ca_file": "/etc/ssl/ca.pem"])
  }

  // MARK: An existing file

  nonisolated static let file = #"""
    { "$schema": "s", "gateway": { "id": "attic" },
      "mqtt": { "host": "old", "port": 1883, "base_topic": "home", "username": "u", "password_file": "secret" },
      "devices": [ { "match": { "identifier": "C5:A1:B2:C3:D4:E5" }, "id": "hall", "period": 5000 },
        { "match": { "name_prefix": "BBC micro:bit" } } ],
      "profiles": {} }
    """#

  @Test func onlyWhatIsAnsweredChanges() async throws {
    let present = try present(Self.file)
    #expect(try await dialogue(present).plan?.isEmpty == true)
    let outcome = try await dialogue(present, answering: ["Broker": "new", "Which": "join"])
    #expect(outcome.questions("Which").first?.preset == "all")
    let changes = present.changes(to: outcome.plan?.text ?? "")
    #expect(changes.starts(with: [#"  -     "host": "old","#, #"  +     "host": "new","#]), "\(changes)")
    let document = try outcome.document()
    guard case .object(let object) = document else { return }
    #expect(object.names == ["$schema", "gateway", "mqtt", "devices", "profiles"])
    #expect(document["mqtt"]?["base_topic"] == "home" && document["mqtt"]?["password_file"] == "secret")
    #expect(try outcome.entries().map { $0["id"] } == ["hall"])
  }

  /// An entry of the file would take the place of the fleet's.
  @Test func entriesOfAFleetAreNotAskedFor() async throws {
    let fleet = try present(#"{"fleet":true,"mqtt":{"host":"old","port":1883}}"#)
    let outcome = try await dialogue(fleet, answering: ["Broker": "new"])
    let document = try outcome.document()
    #expect(document == ["fleet": .bool(true), "mqtt": ["host": "new", "port": .integer(1883)]])
    #expect(outcome.questions("Which").isEmpty)
    let own = try present(#"{"fleet":true,"devices":[]}"#)
    #expect(try await dialogue(own, answering: ["Which": "all"]).entries() == [.everyMicrobit])
  }

  @Test func newPasswordIsWrittenToTheExistingFile() async throws {
    let plan = try await dialogue(present(Self.file), answering: ["Password": "new"]).plan
    #expect(plan == SetupPlan(text: nil, secrets: ["secret": Array("new".utf8)]))
  }

  @Test("Whoever tries another password, and returns to the one in the file, keeps the file")
  func presentPasswordAfterAWrongOne() async throws {
    let outcome = try await dialogue(
      present(Self.file), trouble: [["the broker rejected the login"]],
      answering: ["Password": "wrong", "What now?": "change", "Password": "old"])
    #expect(outcome.tried.map(\.mqtt.password) == ["wrong", "old"].map { Array($0.utf8) })
    #expect(outcome.plan == SetupPlan())
  }

  @Test func newUserNameDropsTheOldPassword() async throws {
    let outcome = try await dialogue(present(Self.file), answering: ["User": "other"])
    #expect(outcome.questions("Password").first?.prompt == "Password (typing is not shown)")
    let mqtt = try #require(outcome.tried.first).mqtt
    #expect(mqtt.username == "other" && mqtt.password == nil && mqtt.passwordFile == nil)
  }
}

extension SetupQuestion {
  fileprivate func begins(with text: String) -> Bool {
    prompt.drop(while: \.isWhitespace).hasPrefix(text)
  }
}
