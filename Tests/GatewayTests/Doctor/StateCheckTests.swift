import Configuration
import Findings
import Glibc
import Store
import TestSupport
import Testing

@testable import Gateway

struct StateCheckTests {
  private let gateway = GatewayID("living-room")!

  private func findings(_ folder: String, service: String = "/no/such/service") -> [Finding] {
    StateCheck(gateway: gateway, environment: ["STATE_DIRECTORY": folder], service: service).run()
  }

  @Test func aNewFolderIsFine() throws {
    let folder = try TemporaryFolder()
    let found = findings(folder.path + "/new/state")
    #expect(found.count == 1)
    #expect(found.first?.text.contains("/new/state is writable") == true)
  }

  /// Beside a running gateway, which may be another user's.
  @Test func onlyAFullDiskIsFoundWithoutTheDatabase() {
    var check = StateCheck(
      gateway: gateway, environment: ["STATE_DIRECTORY": "/proc/1"], service: "/no/such/service")
    check.least = 0
    #expect(check.space() == [])
    check.least = .max
    #expect(check.space().map(\.level) == [.warning])
    #expect(check.space().first?.text.hasPrefix("the disk of /proc/1 is nearly full") == true)
  }

  @Test func undefinedFolderIsAFault() {
    let found = StateCheck(gateway: gateway, environment: [:], service: "/no/such/service").run()
    #expect(found.first?.remedy == "set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path")
  }

  /// A file in its place, because permissions do not restrict root, which the tests may run as.
  @Test func aFileInPlaceOfTheFolderIsAFault() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("", to: "state")
    #expect(findings(file + "/state").first?.text.hasPrefix("\(file) is not a folder") == true)
  }

  @Test func whatAUserCannotWriteSaysNothingOfTheService() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("", to: "home")
    var check = StateCheck(
      gateway: gateway, environment: ["HOME": file], service: "/no/such/service",
      serviceAccess: ServiceAccess(user: geteuid() + 1, groups: []))
    check.user = 1000
    let found = check.run()
    #expect(found.map(\.level) == [.warning] && found.first?.remedy == "sudo microbit-gateway doctor")
    #expect(found.first?.text.contains("lost") == false)
  }

  /// As root sees the service's folder while the service is stopped.
  private func ofService(_ folder: TemporaryFolder, environment: [String: String] = ["HOME": "/no/such"])
    -> [Finding]
  {
    var check = StateCheck(
      gateway: gateway, environment: environment, service: folder.path,
      // The user of the service is not the owner of the folder.
      serviceAccess: ServiceAccess(user: geteuid() + 1, groups: []))
    check.user = 0
    return check.run()
  }

  @Test func folderThatTheServiceMayNotWriteIsAFault() throws {
    let folder = try TemporaryFolder()
    chmod(folder.path, 0o700)
    let found = ofService(folder)
    #expect(found.map(\.level) == [.fault])
    #expect(
      found.first?.text.contains("the service, which runs as microbit-gateway, may not write \(folder.path)")
        == true)
    #expect(found.first?.remedy == "sudo chown -R microbit-gateway: \(folder.path)")
    // A single file in it, as after a run by hand.
    chmod(folder.path, 0o777)
    #expect(ofService(folder).map(\.level) == [.ok])
    let lock = try folder.write("", to: "living-room.db.lock")
    chmod(lock, 0o600)
    #expect(ofService(folder).first?.text.contains("may not write \(lock)") == true)
  }

  @Test func folderOfARunByHandIsNamed() async throws {
    let folder = try TemporaryFolder()
    let own = folder.path + "/microbit-gateway"
    mkdir(own, 0o700)
    await StateDatabase(path: own + "/living-room.db").close(within: patience)
    chmod(folder.path, 0o777)
    let found = ofService(folder, environment: ["XDG_STATE_HOME": folder.path])
    #expect(found.map(\.level) == [.ok, .warning])
    #expect(
      found.last?.text.hasPrefix("\(own) is that of a gateway started by root, not that of the service")
        == true)
    #expect(found.last?.remedy?.contains("sudo rm -r \(own)") == true)
  }

  @Test func fileThatIsNoDatabaseIsAFault() throws {
    let folder = try TemporaryFolder()
    try folder.write("no database", to: "living-room.db")
    let found = findings(folder.path)
    #expect(found.first?.level == .fault)
    #expect(found.first?.remedy?.contains("move the file away") == true)
  }
}
