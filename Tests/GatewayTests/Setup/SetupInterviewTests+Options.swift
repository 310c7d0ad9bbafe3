import Configuration
import EventLoop
import JSON
import TestSupport
import Testing

@testable import Gateway

/// Options instead of questions.
extension SetupInterviewTests {
  @Test func givenOptionsSkipTheirQuestions() async throws {
    let setup = Setup(options: [
      "--broker": ["broker"], "--port": ["8883"], "--username": ["u"], "--http": ["nobody"],
    ])
    let outcome = try await dialogue(Self.new, setup)
    let prompts = outcome.asked.map { $0.prompt.split(separator: " ").first }
    #expect(prompts == ["File", "Password", "Which", "Area"])
    #expect(outcome.tried.first?.mqtt.port == 8883)
  }

  @Test(arguments: [
    ("--broker", "http://x"), ("--port", "99999"), ("--username", "a\u{7}"), ("--id", "a b"),
    ("--http", "some"), ("--device", "kitchen"), ("--http", "network"),
  ])
  func invalidOptionsAreUsageErrors(option: String, text: String) async throws {
    do {
      let failure = try await dialogue(Self.new, unattended([option: [text]])).failure
      #expect(failure?.status == .usage && failure?.text.contains("--") == true, "\(failure?.text ?? "")")
    } catch let failure as CommandFailure {
      #expect(failure.status == .usage && failure.text.hasPrefix("\(option): "))
    }
  }

  @Test func machinesSetMore() async throws {
    let folder = try TemporaryFolder()
    let password = try folder.write("page word\n", to: "page")
    let setup = unattended([
      "--id": ["attic"], "--fleet": [""], "--area": ["Roof"], "--http": ["network"],
      "--http-password-file": [password], "--cert-file": ["/etc/c.pem"],
      "--key-file": ["/etc/k.pem"],
    ])
    let outcome = try await dialogue(Self.new, setup)
    let document = try outcome.document()
    #expect(outcome.asked.isEmpty && document["fleet"] == .bool(true))
    #expect(document["gateway"] == ["id": "attic", "area": "Roof"])
    #expect(document["mqtt"]?["tls"] == ["cert_file": "/etc/c.pem", "key_file": "/etc/k.pem"])
    #expect(outcome.plan?.secrets == ["http.password": Array("page word".utf8)])
    #expect(document["devices"] == nil, "they come from the message for the whole fleet")
    let all = try await dialogue(Self.new, unattended(["--fleet": [""], "--all": [""]]))
    #expect(try all.entries() == [.everyMicrobit])
  }

  @Test func unattendedSetupFailsInsteadOfAsking() async throws {
    let refused = try await dialogue(
      Self.new, unattended(), trouble: [["the broker rejected the login"]]
    ).failure
    #expect(refused?.status == .unavailable && refused?.text.contains("rejected the login") == true)
  }

  /// For a user that the existing file does not have.
  @Test func givenPasswordIsUsedForAGivenUser() async throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("secret\n", to: "password")
    let setup = unattended(["--username": ["gateway"], "--password-file": [file]])
    let outcome = try await dialogue(present(Self.file), setup)
    #expect(outcome.tried.first?.mqtt.password == Array("secret".utf8))
    #expect(outcome.plan?.secrets == ["secret": Array("secret".utf8)])
    for options in [
      ["--password-file": [file]], ["--http-password-file": [file], "--yes": [""]],
      ["--http-password-file": [file], "--http": ["computer"]],
    ] {
      #expect(throws: CommandFailure.self, "\(options)") { try Setup(options: options).given(Self.new) }
    }
    #expect(try Setup(options: ["--http-password-file": [file]]).given(Self.new).count == 1)
  }

  @Test func commandLineDevicesAreWritten() async throws {
    let devices = ["C5:A1:B2:C3:D4:E5=Kitchen window,Kitchen", "d05a0000c0de", "d05a0000c0de=Küche"]
    for options in [["--device": devices, "--all": [""]], ["--device": devices]] {
      let outcome = try await dialogue(Self.new, unattended(options))
      let named: [JSONValue] = [
        [
          "match": ["identifier": "C5:A1:B2:C3:D4:E5"], "name": "Kitchen window", "id": "kitchen-window",
          "area": "Kitchen",
        ],
        ["match": ["identifier": "D0:5A:00:00:C0:DE"], "name": "Küche", "id": "kueche"],
      ]
      #expect(try outcome.entries() == named + (options.count == 2 ? [.everyMicrobit] : []))
    }
    let everyOne: JSONValue = ["match": ["name_prefix": "BBC micro:bit"], "period": .integer(5000)]
    let kept = try await dialogue(
      present("{\"devices\":[\(everyOne.written)]}"), unattended(["--device": ["D05A0000C0DE=Door"]]))
    #expect(try kept.entries().count == 2 && kept.entries().last == everyOne)
    let same = ["C5:A1:B2:C3:D4:E5=Hall", "D0:5A:00:00:C0:DE=Hall"]
    #expect {
      try unattended(["--device": same]).answers(Self.new)
    } throws: {
      ($0 as? CommandFailure)?.text
        == "--device: C5:A1:B2:C3:D4:E5 and D0:5A:00:00:C0:DE are both called \"hall\" in topics: choose another name for one of them."
    }
  }
}
