import Findings
import Glibc
import TestSupport
import Testing

@testable import Gateway

struct ServiceAccessTests {
  /// A user that owns no file here, and that no folder is hidden from.
  private let access = ServiceAccess(user: 54321, groups: [54322], hidden: [])

  private func folder() throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    chmod(folder.path, 0o755)
    return folder
  }

  private static let modes: [(mode_t, Bool)] = [(0o644, true), (0o640, false), (0o600, false)]

  @Test(arguments: modes)
  func readabilityFollowsTheFileMode(_ mode: mode_t, _ isReadable: Bool) throws {
    let folder = try folder()
    let file = try folder.write("", to: "config.json")
    chmod(file, mode)
    #expect(access.obstacle(to: file) == (isReadable ? nil : .file))
    let owner = ServiceAccess(user: getuid(), groups: [], hidden: [])
    #expect(owner.obstacle(to: file) == nil)
    let member = ServiceAccess(user: 54321, groups: [getgid()], hidden: [])
    #expect(member.obstacle(to: file) == (mode == 0o600 ? .file : nil))
  }

  @Test func closedFolderIsAnObstacle() throws {
    let folder = try folder()
    let file = try folder.write("", to: "ca.pem")
    chmod(file, 0o644)
    chmod(folder.path, 0o700)
    #expect(access.obstacle(to: file) == .folder)
    #expect(access.obstacle(to: "/no/such/file") == nil)
  }

  @Test func hiddenFolderIsAnObstacleToFilesAndLinks() throws {
    let folder = try folder()
    mkdir(folder.path + "/hidden", 0o755)
    mkdir(folder.path + "/hidden-not", 0o755)
    let access = ServiceAccess(user: getuid(), groups: [], hidden: [folder.path + "/hidden"])
    let hidden = try folder.write("", to: "hidden/ca.pem")
    let shown = try folder.write("", to: "hidden-not/ca.pem")
    let (linkToHidden, hiddenLink) = (folder.path + "/ca.pem", folder.path + "/hidden/link.pem")
    symlink(hidden, linkToHidden)
    symlink(shown, hiddenLink)
    for file in [hidden, linkToHidden, hiddenLink] { #expect(access.obstacle(to: file) == .folder) }
    #expect(access.obstacle(to: shown) == nil)
    let standard = ServiceAccess(user: getuid(), groups: [])
    #expect(standard.obstacle(to: shown) == .folder, "in /tmp")
  }

  /// The file may be in use by another program, which must keep it.
  @Test func fileOutsideTheFolderIsCopied() throws {
    let folder = try folder()
    let own = folder.path + "/own folder"
    mkdir(own, 0o755)
    let key = try folder.write("", to: "it's a key.pem")
    chmod(key, 0o600)
    symlink(key, own + "/key.pem")
    let config = try folder.write(
      #"{"mqtt":{"tls":{"cert_file":"key.pem","key_file":"\#(key)"}}}"#, to: "own folder/config.json")
    chmod(config, 0o644)
    let copy =
      #"sudo install -m 600 -o microbit-gateway '\#(folder.path)/it'\''s a key.pem' '\#(own)/'; then name the copy in "#
    #expect(try remedies(config, access) == [copy + "mqtt.tls.cert_file", copy + "mqtt.tls.key_file"])
  }

  /// `chmod` would not help, because the folder is hidden from the service.
  @Test func aLinkIntoAHiddenFolderIsReplacedByACopy() throws {
    let folder = try folder()
    for name in ["home", "linked"] { mkdir("\(folder.path)/\(name)", 0o755) }
    let access = ServiceAccess(user: getuid(), groups: [], hidden: [folder.path + "/home"])
    let hidden = try folder.write("{}", to: "home/config.json")
    let link = folder.path + "/linked/config.json"
    symlink(hidden, link)
    #expect(try remedies(link, access) == ["sudo install -m 644 \(hidden) \(link)"])
    let linkedFolder = folder.path + "/microbit-gateway"
    symlink(folder.path + "/home", linkedFolder)
    #expect(
      try remedies(linkedFolder + "/config.json", access) == [
        "sudo rm \(linkedFolder); sudo cp -r \(folder.path)/home \(linkedFolder)"
      ])
  }

  @Test func profilesMustBeReadableForTheService() throws {
    let folder = try folder()
    let own = folder.path + "/own"
    for path in [own, own + "/profiles", folder.path + "/home"] { mkdir(path, 0o755) }
    let config = try folder.write(#"{"profiles_directory":"profiles"}"#, to: "own/config.json")
    let profile = try folder.write("{}", to: "own/profiles/battery.json")
    for file in [config, profile] { chmod(file, 0o644) }
    #expect(try remedies(config, access).isEmpty)
    chmod(profile, 0o600)
    #expect(try remedies(config, access) == ["sudo chmod -R a+rX \(own)/profiles"])
    let hiding = ServiceAccess(user: getuid(), groups: [], hidden: [folder.path + "/home"])
    #expect(try remedies(config, hiding).isEmpty)
    symlink(try folder.write("{}", to: "home/light.json"), own + "/profiles/light.json")
    let copy = "sudo cp -rL \(own)/profiles \(own)/profiles-copy; then name the copy in profiles_directory"
    #expect(try remedies(config, hiding) == [copy])
  }

  private func remedies(_ config: String, _ access: ServiceAccess) throws -> [String?] {
    var check = ConfigurationCheck(path: config)
    check.service = (config, access)
    return check.run().findings.filter { $0.level == .fault }.map(\.remedy)
  }

  private static let words: [(String, String)] = [
    ("/etc/microbit-gateway/ca_2.pem", "/etc/microbit-gateway/ca_2.pem"), ("a b", "'a b'"),
    ("$HOME", "'$HOME'"),
    ("~", "'~'"), ("", "''"), ("a'b", #"'a'\''b'"#), ("'", #"''\'''"#), ("ü", "'ü'"), ("a;b", "'a;b'"),
  ]

  @Test(arguments: words)
  func pathsAreQuotedForTheShell(_ path: String, _ word: String) { #expect(path.shellWord == word) }

  @Test func serviceIsCheckedByWhateverPathItsFileIsNamed() throws {
    let folder = try folder()
    let config = try folder.write("{}", to: "config.json")
    chmod(config, 0o600)
    var check = ConfigurationCheck(path: folder.path + "/./config.json")
    check.service = (config, access)
    let faults = check.run().findings.filter { $0.level == .fault }
    #expect(faults.map(\.remedy) == ["sudo chmod 644 \(config)"])
  }

  @Test func unreadableFilesAreReportedWithTheirRemedies() throws {
    let folder = try folder()
    let config = try folder.write(
      #"{"mqtt":{"username":"u","password_file":"secret"},"devices":[{},{"match":{"name":"x"},"profile":"bthome","key_file":"key"}]}"#,
      to: "config.json")
    let secret = try folder.write("secret", to: "secret")
    let key = try folder.write("231d39c1d7cc1ab1aee224cd096db932", to: "key")
    for file in [config, secret, key] { chmod(file, 0o600) }
    var check = ConfigurationCheck(path: config)
    #expect(check.run().findings.allSatisfy { $0.level == .ok }, "not the configuration of the service")
    check.service = (config, access)
    let faults = check.run().findings.filter { $0.level == .fault }
    #expect(
      faults.map(\.text) == [
        "the service, which runs as microbit-gateway, may not read \(config)",
        "the service, which runs as microbit-gateway, may not read \(secret)",
        "the service, which runs as microbit-gateway, may not read \(key)",
      ])
    #expect(
      faults.map(\.remedy) == [
        "sudo chmod 644 \(config)", "sudo chown microbit-gateway \(secret); sudo chmod 600 \(secret)",
        "sudo chown microbit-gateway \(key); sudo chmod 600 \(key)",
      ])
  }
}
