import Glibc
import TestSupport
import Testing

@testable import Gateway

/// `init` writes all of its files or none.
@Suite struct SetupFilesTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func text(_ name: String) -> String? {
    guard let stream = fopen("\(folder.path)/\(name)", "r") else { return nil }
    defer { fclose(stream) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = fread(&bytes, 1, bytes.count, stream)
    return String(decoding: bytes[..<count], as: UTF8.self)
  }

  private func status(_ name: String) throws -> stat {
    var status = stat()
    try #require(stat("\(folder.path)/\(name)", &status) == 0)
    return status
  }

  private static let plan = SetupPlan(
    text: "{}\n", secrets: ["mqtt-password": Array("secret".utf8)])

  @Test func newFilesAreWrittenToANewFolder() throws {
    let files = SetupFiles(path: folder.path + "/a/b/config.json")
    #expect(files.problem == nil)
    #expect(try files.write(Self.plan, backup: "backup") == [])
    #expect(text("a/b/config.json") == "{}\n" && text("a/b/mqtt-password") == "secret")
    #expect(try status("a/b/config.json").st_mode & 0o777 == 0o644)
    #expect(try status("a/b/mqtt-password").st_mode & 0o777 == 0o600)
    #expect(text("a/b/backup") == nil)
  }

  @Test func existingFileIsBackedUp() throws {
    let path = try folder.write("old", to: "config.json")
    chmod(path, 0o640)
    _ = try SetupFiles(path: path).write(Self.plan, backup: "backup")
    #expect(try names(in: folder.path) == ["backup", "config.json", "mqtt-password"])
    #expect(text("backup") == "old" && text("config.json") == "{}\n")
    #expect(try status("config.json").st_mode & 0o777 == 0o640)
    #expect(try status("backup").st_mode & 0o777 == 0o640)
  }

  @Test func threeBackupsAreKept() throws {
    let path = try folder.write("old", to: "config.json")
    for day in 1...4 { try folder.write("\(day)", to: "config.json.bak-2026010\(day)T120000Z") }
    let mine = ["config.json.bak-1", "config.json.bak-old", "config.json.old"]
    for name in mine { try folder.write("mine", to: name) }
    _ = try SetupFiles(path: path).write(Self.plan, backup: "config.json.bak-20260105T120000Z")
    #expect(
      try Set(names(in: folder.path))
        == Set(
          mine + [
            "config.json", "config.json.bak-20260103T120000Z", "config.json.bak-20260104T120000Z",
            "config.json.bak-20260105T120000Z", "mqtt-password",
          ]))
  }

  /// The gateway looks for passwords beside the name that it is given.
  @Test func fileBehindALinkIsReplacedAndPasswordsAreBesideTheLink() throws {
    let place = try TemporaryFolder()
    let target = try place.write("old", to: "mine.json")
    let path = folder.path + "/config.json"
    try #require(symlink(target, path) == 0)
    let files = SetupFiles(path: path, serviceConfiguration: path)
    #expect(files.isOfService == (geteuid() == 0))
    let backup = files.newBackup
    #expect(backup.hasPrefix("mine.json.bak-2"))
    _ = try files.write(Self.plan, backup: backup)
    #expect(try names(in: folder.path) == ["config.json", "mqtt-password"])
    #expect(try names(in: place.path) == ["mine.json", backup])
    #expect(text("config.json") == "{}\n")
  }

  @Test func servicePasswordFileBelongsToServiceUser() throws {
    try #require(geteuid() == 0)
    let path = folder.path + "/config.json"
    let nobody = try #require(getpwnam("nobody")).pointee.pw_uid
    var files = SetupFiles(path: path, serviceConfiguration: path, serviceUser: "nobody")
    #expect(try files.write(Self.plan, backup: "backup") == [])
    #expect(try status("mqtt-password").st_uid == nobody)
    #expect(try status("config.json").st_uid == 0)
    files.serviceUser = "nobody-at-all"
    #expect(try files.write(Self.plan, backup: "backup2").first?.contains("no user nobody-at-all") == true)
  }

  /// As on a full disk, one of the files cannot be replaced.
  @Test(arguments: ["mqtt-password", "config.json"])
  func nothingChangesIfOneFileCannotBeWritten(name: String) throws {
    let files = SetupFiles(path: folder.path + "/config.json")
    let other = name == "config.json" ? "mqtt-password" : "config.json"
    try folder.write("old", to: other)
    // A folder cannot be replaced by a file.
    try #require(mkdir("\(folder.path)/\(name)", 0o700) == 0)
    #expect(throws: CommandFailure.self) { try files.write(Self.plan, backup: "backup") }
    #expect(try names(in: folder.path) == ["config.json", "mqtt-password"])
    #expect(text(other) == "old")
  }

  @Test func unwritableFolderIsReported() throws {
    let inAFile = try folder.write("", to: "file")
    let problem = try #require(SetupFiles(path: inAFile + "/config.json").problem)
    #expect(problem.hasPrefix("cannot write \(inAFile)/config.json: "))
  }
}

@Suite struct ServiceUnitTests {
  private static let states: [(String, ServiceUnit.State)] = [
    ("exit 1", .absent), ("[ $1 = cat ]", .stopped), ("exit 0", .running),
  ]

  /// A script in place of systemctl.
  private func unit(_ folder: TemporaryFolder, _ script: String) throws -> ServiceUnit {
    let program = try folder.script("echo $* >> \(folder.path)/calls\n\(script)\n", named: "systemctl")
    return ServiceUnit(bootFolder: folder.path, program: program)
  }

  @Test(arguments: states)
  func stateFollowsTheExitStatus(script: String, expected: ServiceUnit.State) throws {
    let folder = try TemporaryFolder()
    #expect(try unit(folder, script).state == expected)
  }

  @Test func serviceIsAbsentWithoutSystemd() throws {
    let folder = try TemporaryFolder()
    var unit = try unit(folder, "exit 0")
    unit.bootFolder = folder.path + "/none"
    #expect(unit.state == .absent)
    unit = ServiceUnit(bootFolder: folder.path, program: folder.path + "/none")
    #expect(unit.state == .absent && !unit.start(again: false))
  }

  @Test func serviceIsStartedOrRestarted() throws {
    let folder = try TemporaryFolder()
    let unit = try unit(folder, "exit 0")
    #expect(unit.start(again: false) && unit.start(again: true))
    let stream = try #require(fopen(folder.path + "/calls", "r"))
    defer { fclose(stream) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = fread(&bytes, 1, bytes.count, stream)
    let calls = String(decoding: bytes[..<count], as: UTF8.self)
    #expect(calls == "enable --now microbit-gateway.service\nrestart microbit-gateway.service\n")
  }
}
