import GATT
import Glibc
import TestSupport
import Testing

@testable import Configuration

@Suite struct ConfigurationFileTests {
  func failure(_ path: String?, _ places: [String] = []) -> String? {
    do throws(ConfigurationErrors) {
      _ = try ConfigurationFile.load(path: path, searching: places)
      return nil
    } catch {
      return error.description
    }
  }

  @Test func readsTheNamedFile() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("a.json", #"{"mqtt":{"port":1}}"#)
    let loaded = try ConfigurationFile.load(path: file)
    #expect(loaded.path == file)
    #expect(loaded.configuration.mqtt.port == 1)
    #expect(loaded.warnings == [])
  }

  @Test func searchesTheDefaultPathsInOrder() throws {
    let folder = try TemporaryFolder()
    let places = ["\(folder.path)/1.json", "\(folder.path)/2.json"]
    #expect(
      failure(nil, places)
        == "no configuration: neither \(places[0]) nor \(places[1]) exists (write one: microbit-gateway init; or name another with --config)"
    )
    try folder.write("2.json", #"{"mqtt":{"port":2}}"#)
    #expect(try ConfigurationFile.load(path: nil, searching: places).path == places[1])
    try folder.write("1.json", "")
    #expect(failure(nil, places) == "\(places[0]):1:1: the text is empty")
    #expect(ConfigurationFile.searched == ["./config.json", "/etc/microbit-gateway/config.json"])
  }

  /// From the working directory to a folder, by its parents.
  private static func relative(_ path: String) -> String {
    String(repeating: "../", count: 64) + path.dropFirst()
  }

  private static let owners: [(file: (uid_t, mode_t), folder: (uid_t, mode_t), reason: String?)] = [
    ((0, 0o644), (0, 0o755), nil), ((0, 0o600), (0, 0o700), nil),
    ((1, 0o644), (0, 0o755), "it belongs to daemon"),
    ((0, 0o644), (1, 0o755), "its folder belongs to daemon"),
    ((0, 0o666), (0, 0o755), "other users can write to it"),
    ((0, 0o664), (0, 0o755), "other users can write to it"),
    ((0, 0o644), (0, 0o1777), "other users can write to its folder"),
  ]

  @Test(
    "Root takes a file of the folder that it is in only if it is root's alone",
    .enabled(if: geteuid() == 0), arguments: owners)
  func foreignFiles(file: (uid_t, mode_t), folder: (uid_t, mode_t), reason: String?) throws {
    let directory = try TemporaryFolder()
    let path = try directory.write("config.json", "{}")
    for (path, (user, mode)) in [(path, file), (directory.path, folder)] {
      #expect(chown(path, user, 0) == 0 && chmod(path, mode) == 0)
    }
    let place = Self.relative(path)
    #expect(
      failure(nil, [place])
        == reason.map {
          "\(place): root does not use it: \($0) (name it with --config if you trust what it says, or go to another folder)"
        })
    // By its name, or in a folder of the system, it was put there on purpose.
    #expect(failure(place) == nil && failure(nil, [path]) == nil)
  }

  @Test("A link is not root's alone, wherever it leads", .enabled(if: geteuid() == 0))
  func foreignLink() throws {
    let folder = try TemporaryFolder()
    try folder.write("real.json", "{}", mode: 0o644)
    #expect(symlink("real.json", folder.path + "/config.json") == 0)
    #expect(
      failure(nil, [Self.relative(folder.path + "/config.json")])?.contains("root does not use it") == true)
  }

  @Test func unreadableFileIsReportedWithTheReason() throws {
    let folder = try TemporaryFolder()
    let missing = "\(folder.path)/missing.json"
    #expect(failure(missing) == "\(missing): No such file or directory (name another with --config)")
    #expect(failure(folder.path) == "\(folder.path): Is a directory")
    let closed = try folder.write("closed.json", "{}", mode: 0)
    // Root may read everything.
    if geteuid() != 0 { #expect(failure(closed) == "\(closed): Permission denied") }
    let large = try folder.write("large.json", [UInt8](repeating: 0x20, count: (1 << 20) + 1))
    #expect(failure(large) == "\(large): it is longer than 1 MiB")
    let binary = try folder.write("binary.json", [0x7F, 0x45, 0x4C, 0x46, 0xFF])
    #expect(failure(binary) == "\(binary):1:5: this is not UTF-8")
  }

  @Test(arguments: [(EACCES, true), (ENOENT, false)])
  func errorOfAFileThatIsClosedToTheUserSaysSo(code: Int32, isDenied: Bool) {
    errno = code
    let problem = FileProblem()
    let key = ConfigurationPath.root.key("mqtt").key("password_file").error("/a", problem, hint: "create it")
    #expect(key.isDenied == isDenied && key.withoutHint.isDenied == isDenied)
    #expect(ConfigurationErrors.unreadable("/a", problem).errors.map(\.isDenied) == [isDenied])
  }

  @Test(.timeLimit(.minutes(10)))
  func aPipeIsReadOnlyIfTheCallerHasOpenedIt() throws {
    let folder = try TemporaryFolder()
    let pipe = folder.path + "/pipe"
    try #require(mkfifo(pipe, 0o600) == 0)
    #expect(failure(pipe) == "\(pipe): it is a pipe or a device, not a file")
    #expect(failure("/dev/zero") == "/dev/zero: it is a pipe or a device, not a file")
    let file = try folder.write("a.json", #"{"mqtt":{"username":"u","password_file":"pipe"}}"#)
    #expect(
      failure(file)
        == "\(file):1:41: mqtt.password_file: \(pipe): it is a pipe or a device, not a file")
    var ends: [Int32] = [0, 0]
    try #require(Glibc.pipe(&ends) == 0)
    try #require(write(ends[1], #"{"mqtt":{"port":1}}"#, 19) == 19)
    close(ends[1])
    #expect(try ConfigurationFile.load(path: "/dev/fd/\(ends[0])").configuration.mqtt.port == 1)
    close(ends[0])
  }

  @Test func everyErrorIsALineWithTheFilePath() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("a.json", #"{"mqtt":{"port":0,"qos":2}}"#)
    #expect(failure(file) == "\(file):1:17: mqtt.port: 0 is below 1\n\(file):1:25: mqtt.qos: 2 is above 1")
  }

  @Test(arguments: [
    "secret", "secret\n", "secret\r\n", "secret\nsecond line\n", "\u{FEFF}secret\r\n", "secret\n\0",
  ])
  func passwordIsTheFirstLineOfItsFile(content: String) throws {
    let folder = try TemporaryFolder()
    let password = try folder.write("password", content)
    let file = try folder.write("a.json", #"{"mqtt":{"username":"u","password_file":"password"}}"#)
    let loaded = try ConfigurationFile.load(path: file)
    #expect(loaded.configuration.mqtt.password == Array("secret".utf8))
    #expect(loaded.configuration.mqtt.passwordFile == password)
    #expect(loaded.warnings == [])
  }

  @Test(arguments: [
    ([0xFF, 0xFE, 0x61, 0x00, 0x62, 0x00, 0x0A, 0x00], "is not UTF-8: save the file as UTF-8"),
    ([0xFE, 0xFF, 0x00, 0x61], "is not UTF-8: save the file as UTF-8"),
    ([0x61, 0x00, 0x62, 0x00], "has a control character: save the file as plain text in UTF-8"),
    ([0x61, 0x09, 0x62], "has a control character: save the file as plain text in UTF-8"),
    ([0x67, 0xFC, 0x6E], "is not UTF-8: save the file as UTF-8"),
    ([0xEF, 0xBB, 0xBF, 0x0A], "is empty"),
  ])
  func aPasswordThatIsNoTextIsRefused(content: [UInt8], problem: String) throws {
    let folder = try TemporaryFolder()
    let password = try folder.write("password", content)
    let file = try folder.write("a.json", #"{"mqtt":{"username":"u","password_file":"password"}}"#)
    #expect(
      failure(file) == "\(file):1:41: mqtt.password_file: \(password): its first line \(problem)")
  }

  @Test func worldReadablePasswordFileHasAWarning() throws {
    let folder = try TemporaryFolder()
    let password = try folder.write("password", " with space ", mode: 0o644)
    let file = try folder.write("a.json", #"{"mqtt":{"username":"u","password_file":"\#(password)"}}"#)
    let loaded = try ConfigurationFile.load(path: file)
    #expect(loaded.configuration.mqtt.password == Array(" with space ".utf8))
    #expect(
      loaded.warnings.map { $0.description(in: "c.json") }
        == ["c.json:1:41: mqtt.password_file: \(password) can be read by every user (chmod o-r \(password))"])
  }

  @Test func missingAndEmptyFilesAreReported() throws {
    let folder = try TemporaryFolder()
    try folder.write("empty", "\n")
    try folder.write("ca", "x")
    let file = try folder.write(
      "a.json",
      #"""
      {"mqtt":{"username":"u","password_file":"empty",
       "tls":{"ca_file":"ca","cert_file":"/nonexistent/cert","key_file":"key"}}}
      """#)
    #expect(
      failure(file) == """
        \(file):1:41: mqtt.password_file: \(folder.path)/empty: its first line is empty
        \(file):2:36: mqtt.tls.cert_file: /nonexistent/cert: No such file or directory (create it, or correct the path)
        \(file):2:67: mqtt.tls.key_file: \(folder.path)/key: No such file or directory (create it, or correct the path)
        """)
    let awaiting = try ConfigurationFile.load(path: file, filesMayBeAway: true)
    #expect(awaiting.configuration.mqtt.passwordFile == "\(folder.path)/empty")
    #expect(awaiting.configuration.mqtt.tls?.keyFile == "\(folder.path)/key")
  }

  @Test func theKeyOfADeviceCanBeInAFile() throws {
    let folder = try TemporaryFolder()
    let digits = "231d39c1d7cc1ab1aee224cd096db932"
    let key = try folder.write("key", digits + "\n")
    let file = try folder.write(
      "a.json",
      #"{"devices":[{"match":{"service":"fcd2"},"profile":"bthome","key_file":"key"}]}"#)
    let entry = try #require(try ConfigurationFile.load(path: file).configuration.devices.first)
    #expect(entry.key == Hexadecimal.bytes(digits) && entry.keyFile == key)
    try folder.write("key", "not a key")
    let problem = "\(key): its first line has not the 32 hexadecimal digits of a key"
    #expect(failure(file)?.hasSuffix(problem) == true)
    // Nothing else says it of a gateway that starts without the key.
    let started = try ConfigurationFile.load(path: file, filesMayBeAway: true)
    #expect(started.warnings.map(\.problem) == [problem])
  }

  @Test func onlyAFileThatCannotBeReadIsUnreadable() throws {
    let folder = try TemporaryFolder()
    func isUnreadable(_ path: String?) -> Bool? {
      do throws(ConfigurationErrors) {
        _ = try ConfigurationFile.load(path: path, searching: [])
        return nil
      } catch {
        return error.isUnreadable
      }
    }
    #expect(isUnreadable(nil) == true)
    #expect(isUnreadable("\(folder.path)/missing.json") == true)
    let wrong = try folder.write("wrong.json", "{")
    #expect(isUnreadable(wrong) == false)
    let other = try folder.write("a.json", #"{"profiles_directory":"profiles.d"}"#)
    #expect(isUnreadable(other) == true)
    try #require(mkdir(folder.path + "/profiles.d", 0o700) == 0)
    #expect(isUnreadable(other) == nil)
    try folder.write("profiles.d/a.json", "{")
    #expect(isUnreadable(other) == false)
    try #require(unlink(folder.path + "/profiles.d/a.json") == 0)
    try #require(symlink("missing", folder.path + "/profiles.d/a.json") == 0)
    #expect(isUnreadable(other) == true)
  }

  @Test func tlsFilesAreRelativeToTheConfiguration() throws {
    let folder = try TemporaryFolder()
    let ca = try folder.write("ca.pem", "x", mode: 0o644)
    let file = try folder.write("a.json", #"{"mqtt":{"tls":{"ca_file":"ca.pem"}}}"#)
    let loaded = try ConfigurationFile.load(path: file)
    var tls = Configuration.TLS()
    tls.caFile = ca
    #expect(loaded.configuration.mqtt.tls == tls)
    #expect(loaded.warnings == [], "a certificate is no secret")
  }
}

extension TemporaryFolder {
  /// Writes a file with the permissions `mode`; returns its path.
  @discardableResult
  fileprivate func write(_ name: String, _ text: String, mode: mode_t = 0o600) throws -> String {
    try write(name, Array(text.utf8), mode: mode)
  }

  @discardableResult
  fileprivate func write(_ name: String, _ bytes: [UInt8], mode: mode_t = 0o600) throws -> String {
    let file = try write(bytes, to: name)
    try #require(chmod(file, mode) == 0)
    return file
  }

  /// A file that only root may read is of no use to the service.
  @Test func aFileOfTheServiceIsClosedToOthersOnly() {
    #expect(
      FileResolver.closing("/etc/microbit-gateway/http.password")
        == "sudo chown microbit-gateway /etc/microbit-gateway/http.password; sudo chmod 600 /etc/microbit-gateway/http.password"
    )
    #expect(FileResolver.closing("/home/pi/password") == "chmod o-r /home/pi/password")
  }
}
