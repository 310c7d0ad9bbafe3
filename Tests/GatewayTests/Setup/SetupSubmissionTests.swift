import Configuration
import Glibc
import JSON
import TestSupport
import Testing

@testable import Gateway

/// The answers of the form in a browser, from their JSON to the files.
@Suite struct SetupSubmissionTests {
  private static let new = PresentConfiguration(path: "/tmp/config.json", document: [:])

  private static func text(_ json: JSONValue) throws -> JSONValue {
    let plan = try SetupSubmission(json).answers(new).plan
    return try JSONParser.parse(Array(try #require(plan.text).utf8))
  }

  @Test func theDefaultsWork() throws {
    let answers = try SetupSubmission(["page_password": "correct horse"]).answers(Self.new)
    #expect(answers.plan.secrets == ["http.password": Array("correct horse".utf8)])
    let document = try JSONParser.parse(Array((answers.plan.text ?? "").utf8))
    #expect(
      document["http"] == ["enabled": .bool(true), "address": "::", "password_file": "http.password"])
    #expect(document["devices"] == [.everyMicrobit] && document["mqtt"]?["host"] == "localhost")
    #expect(try answers.configuration().isSetUp(document))
  }

  @Test func everythingIsWritten() throws {
    let json: JSONValue = [
      "page": "computer", "host": "broker.local", "port": .integer(8884), "tls": .bool(true), "username": "u",
      "password": " p ", "microbits": "join", "area": "Room 12",
    ]
    let answers = try SetupSubmission(json).answers(Self.new)
    #expect(answers.plan.secrets == ["mqtt-password": Array(" p ".utf8)])
    let document = try Self.text(json)
    #expect(document["http"] == ["enabled": .bool(true)] && document["devices"] == [])
    #expect(
      document["mqtt"] == [
        "host": "broker.local", "port": .integer(8884), "tls": [:], "username": "u",
        "password_file": "mqtt-password",
      ])
    #expect(document["gateway"] == ["area": "Room 12"])
    #expect(try Self.text(["page": "computer", "tls": .bool(true)])["mqtt"]?["port"] == .integer(8883))
  }

  /// The fields have what the form begins with.
  @Test(arguments: [
    ("mqtts://broker", false, 1883, 8883, true), ("mqtt://broker:1884", false, 1883, 1884, false),
    ("broker:1884", false, 1883, 1884, false), ("broker:8884", true, 8883, 8884, true),
    ("mqtt://broker", true, 8883, 8883, true), ("mqtts://broker", true, 8884, 8884, true),
  ])
  func theAddressPrecedesTheFields(
    host: String, isEncrypted: Bool, field: Int, port: Int, isResult: Bool
  ) throws {
    let mqtt = try Self.text([
      "page": "computer", "host": .string(host), "tls": .bool(isEncrypted), "port": .integer(field),
    ])["mqtt"]
    #expect(mqtt == ["host": "broker", "port": .integer(port), "tls": isResult ? [:] : nil], "\(host)")
  }

  private static let refused: [(JSONValue, String)] = [
    ([:], "At least 4 characters"), (["page_password": "abc"], "At least 4 characters"),
    (["page_password": "abcd\u{1B}[D"], "control character"),
    (["page": "everybody"], "page: expected"),
    (["page": "computer", "host": "http://broker"], "not a host name"),
    (["page": "computer", "host": "1883"], "is a number"),
    (["page": "computer", "port": .integer(0)], "port: "),
    (["page": "computer", "area": "a\u{1B}b"], "control character"), ("x", "expected an object"),
    (["page": "computer", "ca_file": "/etc/shadow"], "ca_file: unknown key"),
    (["page": "computer", "password_file": "/etc/shadow"], "password_file: unknown key"),
    (["page": "computer", "devices": []], "devices: unknown key"),
  ]

  @Test("Wrong answers are refused with a reason, files and other keys always", arguments: refused)
  func refusals(json: JSONValue, reason: String) {
    do {
      _ = try SetupSubmission(json).answers(Self.new)
      Issue.record("\(json.text()) is taken")
    } catch {
      #expect(error.description.contains(reason), "\(error)")
    }
  }

  // MARK: What is kept until it is written

  private struct Place {
    let folder: TemporaryFolder
    let pending: PendingSetup
    let path: String

    init(_ configuration: String) throws {
      folder = try TemporaryFolder()
      path = try folder.write(configuration, to: "config.json")
      pending = try #require(PendingSetup(["STATE_DIRECTORY": folder.path + "/state"]))
    }

    func apply() throws(CommandFailure) -> [String] { try pending.apply(to: path) }
    func present() -> PresentConfiguration { PresentConfiguration(readingFrom: path) }
  }

  /// The folder is the service's user's, and root applies the answers.
  @Test func linkIsNotFollowed() throws {
    let place = try Place("{}")
    try place.pending.store(["page_password": "word"])
    let other = place.folder.path + "/other.json"
    #expect(rename(place.pending.path, other) == 0 && symlink(other, place.pending.path) == 0)
    #expect(throws: CommandFailure(.refused, "\(place.pending.path) has no answers")) { try place.apply() }
    #expect(access(other, F_OK) == 0 && place.present().configuration.http.isEnabled == false)
  }

  @Test func answersAreWrittenOnce() throws {
    let place = try Place("{}")
    #expect(try place.apply() == [])
    try place.pending.store(["page_password": "word"])
    var status = stat()
    #expect(stat(place.pending.path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(try place.apply().first == "written: \(place.path)")
    let present = place.present()
    #expect(present.problem == nil && present.configuration.http.isEnabled)
    #expect(access(place.pending.path, F_OK) != 0)
    #expect(try place.apply() == [])
  }

  /// Somebody may have set it up at a terminal meanwhile.
  @Test func aGatewayThatIsSetUpStaysAsItIs() throws {
    let place = try Place(#"{"http":{"enabled":false}}"#)
    try place.pending.store(["page_password": "word"])
    #expect(throws: CommandFailure.self) { try place.apply() }
    #expect(place.present().document == ["http": ["enabled": .bool(false)]])
    #expect(access(place.pending.path, F_OK) != 0)
  }

  /// The service's user could name a file that only root may read.
  @Test func aLinkIsNotFollowed() throws {
    let place = try Place("{}")
    try place.pending.store(["page_password": "word"])
    try #require(rename(place.pending.path, place.path + ".answers") == 0)
    try #require(symlink(place.path + ".answers", place.pending.path) == 0)
    #expect(throws: CommandFailure.self) { try place.apply() }
    #expect(place.present().document == [:])
  }

  @Test(arguments: ["[", #"{"page":"computer","host":"a b"}"#, "{}", String(repeating: " ", count: 100_000)])
  func damagedAnswersAreNotUsed(text: String) throws {
    let place = try Place("{}")
    mkdir(place.folder.path + "/state", 0o700)
    try place.folder.write(text, to: "state/setup.json")
    #expect(throws: CommandFailure.self) { try place.apply() }
    #expect(place.present().document == [:] && access(place.pending.path, F_OK) != 0)
  }

  /// A container may have a service manager that does not.
  @Test func theMarkSaysThatTheServiceAppliesAnswers() throws {
    let folder = try TemporaryFolder()
    let environment = ["RUNTIME_DIRECTORY": folder.path]
    let path = "/etc/microbit-gateway/config.json"
    #expect(!PendingSetup.isApplied(to: path, environment) && !PendingSetup.isApplied(to: path, [:]))
    PendingSetup.noteApplied(to: path, [:])
    PendingSetup.noteApplied(to: path, environment)
    #expect(PendingSetup.isApplied(to: path, environment))
    #expect(!PendingSetup.isApplied(to: "/srv/config.json", environment), "the service uses another one")
  }

  @Test func theInvitationHasAddressesAndTheCode() {
    let answer: JSONValue = [
      "code": "K7QD-3MPX", "minutes": .integer(30),
      "urls": ["http://pi.local:8484/", "http://192.0.2.7:8484/"],
    ]
    #expect(
      Invitation.lines(answer) == [
        "Open one of these addresses in a browser, and type the code K7QD-3MPX",
        "(valid for 30 minutes; if it is refused: sudo microbit-gateway setup):",
        "  http://pi.local:8484/", "  http://192.0.2.7:8484/",
      ])
  }
}
