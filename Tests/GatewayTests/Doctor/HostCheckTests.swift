import Configuration
import Findings
import GATT
import Glibc
import JSON
import Log
import Store
import TestSupport
import Testing

@testable import BlueZ
@testable import Gateway

struct ClockCheckTests {
  private let now = Timestamp("2026-01-01T00:00:00.000Z")!

  @Test func aSynchronisedClockIsFine() {
    #expect(ClockCheck(now: now, isSynchronised: true).run() == .ok(.clock, "the clock is synchronised"))
    #expect(ClockCheck(now: now, isSynchronised: nil).run().level == .ok)
  }

  @Test func anUnsynchronisedClockIsAWarning() {
    let found = ClockCheck(now: now, isSynchronised: false).run()
    #expect(found.level == .warning)
    #expect(found.remedy?.hasPrefix("sudo timedatectl set-ntp true") == true)
  }

  @Test(arguments: [(0, "1970"), (1_735_689_599_999, "2024"), (5_000_000_000_000, "2128")])
  func anImplausibleYearIsAFault(_ now: Int64, _ year: String) {
    let found = ClockCheck(now: Timestamp(milliseconds: now), isSynchronised: true).run()
    #expect(found.level == .fault)
    #expect(found.text.contains("the year \(year)"))
  }
}

struct BluetoothdVersionTests {
  @Test func versionsAreOrdered() throws {
    let old = try #require(BluetoothdVersion("5.66\n"))
    #expect(old < BluetoothdVersion(5, 82))
    #expect(old.description == "5.66")
    #expect(BluetoothdVersion("sh: not found") == nil)
  }

  @Test func knownFaultsAreNamed() {
    #expect(BluetoothdVersion(5, 66).finding.text.contains("(before 5.84)"))
    #expect(!BluetoothdVersion(5, 66).finding.text.contains("crash"))
    #expect(BluetoothdVersion(5, 84).finding.text.contains("a crash after a read that waits for pairing"))
    #expect(!BluetoothdVersion(5, 84).finding.text.contains("stuck"))
    let crashes = "crashes while another program scans for services, and when a link ends (5.87)"
    #expect(BluetoothdVersion(5, 87).finding.text.contains(crashes))
    for other in [86, 88] { #expect(!BluetoothdVersion(5, other).finding.text.contains(crashes)) }
  }

  @Test func versionComesFromTheRunningProgram() throws {
    let folder = try TemporaryFolder()
    let program = try folder.script("echo 5.66\n", named: "bluetoothd")
    mkdir(folder.path + "/7", 0o700)
    mkdir(folder.path + "/8", 0o700)
    try folder.write("\(program)\0--nodetach\0", to: "7/cmdline")
    try folder.write("/usr/bin/another\0", to: "8/cmdline")
    #expect(BluetoothdVersion.ofProcess(7, folder.path) == BluetoothdVersion(5, 66))
    #expect(BluetoothdVersion.ofProcess(8, folder.path) == nil)
    #expect(BluetoothdVersion.ofProcess(9, folder.path) == nil)
  }
}

struct AdapterCheckTests {
  private func report(_ adapters: [HostReport.Adapter]) -> HostReport {
    var report = HostReport()
    report.bluetoothd = 1
    report.adapters = adapters
    return report
  }

  private func adapter(
    _ name: String = "hci0", isPowered: Bool = true, isCentral: Bool = true, isDiscovering: Bool = false,
    links: Int = 0
  ) -> HostReport.Adapter {
    HostReport.Adapter(
      name: name, address: "00:11:22:33:44:55", isPowered: isPowered, isCentral: isCentral,
      isDiscovering: isDiscovering, links: links, gateway: nil)
  }

  private func findings(
    _ report: HostReport, _ adapter: AdapterSelection = AdapterSelection("hci0"),
    block: RFKill.Block? = nil, isGatewayRunning: Bool = false
  ) -> [Finding] {
    AdapterCheck(
      report: report, adapters: [adapter], version: nil,
      blocks: block.map { ["hci0": $0] } ?? [:], mostLinks: 7, isGatewayRunning: isGatewayRunning
    ).run()
  }

  @Test func workingAdapterHasNoFaults() {
    let found = findings(report([adapter(links: 2)]))
    #expect(found.map(\.check) == [.bus, .bluetoothd, .adapter])
    #expect(found.allSatisfy { $0.level == .ok })
    #expect(found.last?.text == "hci0 (00:11:22:33:44:55) is on; 2 of 7 connections are in use")
  }

  @Test func missingBusIsTheOnlyFinding() {
    var report = HostReport()
    report.busProblem = "no such socket"
    let found = findings(report)
    #expect(found.map(\.check) == [.bus])
    #expect(found.first?.text == "no D-Bus (no such socket)")
    #expect(found.first?.remedy == "sudo apt install dbus; sudo systemctl start dbus")
  }

  @Test func busThatHasEndedTheConnectionIsInstalled() {
    var report = HostReport()
    report.busProblem = "the D-Bus connection was lost"
    #expect(findings(report).first?.remedy == "sudo systemctl status dbus; sudo systemctl start dbus")
  }

  @Test func missingBluetoothdIsReported() {
    let found = findings(HostReport())
    #expect(found.last?.text == "bluetoothd is not running")
    #expect(found.last?.remedy == "sudo apt install bluez; sudo systemctl enable --now bluetooth")
  }

  @Test func deniedAccessToBluetoothdIsReported() {
    var report = HostReport()
    report.bluetoothd = 1
    report.refusal = "org.freedesktop.DBus.Error.AccessDenied: Rejected send message"
    report.isDenied = true
    #expect(findings(report).last == CentralState.unauthorized.finding(adapter: ""))
    #expect(findings(report).last?.remedy?.hasPrefix("sudo usermod -aG bluetooth ") == true)
    report.isDenied = false
    report.refusal = "no reply in time"
    #expect(findings(report).last?.remedy == "sudo systemctl restart bluetooth")
  }

  @Test func adapterWithoutLEIsReported() {
    let found = findings(report([adapter(isPowered: false, isCentral: false)]))
    #expect(found.last?.text == "the adapter hci0 has no Bluetooth LE")
    #expect(found.last?.remedy?.hasPrefix("use another adapter") == true)
  }

  @Test func missingAdapterIsReportedWithTheOnesPresent() {
    let found = findings(report([adapter("hci1")]))
    #expect(found.last?.text == "there is no Bluetooth adapter hci0; there is hci1")
    #expect(found.last?.remedy == "name hci1 in bluetooth.adapters of the configuration, or plug hci0 in")
  }

  @Test func adapterWithAnotherNameIsReportedAsInUse() {
    let selection = AdapterSelection("hci0", address: "00:11:22:33:44:55")
    let found = findings(report([adapter("hci1")]), selection)
    #expect(
      found.last?.text
        == "hci1 (00:11:22:33:44:55) is on, and used as hci0; 0 of 7 connections are in use")
    let off = findings(report([adapter("hci1", isPowered: false)]), selection)
    #expect(off.last?.text == "the adapter hci1 is off")
  }

  /// The state database is closed to other users than the gateway's.
  @Test func adapterThatAGatewayHoldsHadTheConfiguredName() {
    var held = report([adapter("hci1"), adapter("hci2")])
    #expect(held.held(as: ["hci0"]).isEmpty)
    held.adapters[0].gateway = 7
    #expect(held.held(as: ["hci0"]) == ["hci0": Array("00:11:22:33:44:55".utf8)])
    #expect(held.held(as: ["hci1"]).isEmpty)
  }

  @Test func poweredOffAdapterIsReported() {
    #expect(findings(report([adapter(isPowered: false)])).last?.remedy == "bluetoothctl power on")
  }

  @Test func blockedAdapterIsReported() {
    let off = report([adapter(isPowered: false)])
    #expect(findings(off, block: .software).last?.remedy == "sudo rfkill unblock bluetooth")
    #expect(
      findings(off, block: .hardware).last?.text == "the adapter hci0 is blocked by a switch of this machine")
  }

  @Test func fullyUsedAdapterIsAWarning() {
    let found = findings(report([adapter(links: 7)]))
    #expect(found.last?.level == .warning)
    #expect(found.last?.text.hasPrefix("all 7 connections of hci0 ") == true)
  }

  @Test func otherProgramsAreReportedUnlessGatewayRuns() throws {
    var report = report([adapter(isDiscovering: true)])
    report.acquired = [
      HostReport.Acquired(
        adapter: "hci0", device: try #require(BluetoothAddress("C5:A1:B2:C3:D4:E5")),
        characteristic: Profile.microbit.properties[0].characteristic)
    ]
    let found = findings(report)
    #expect(found.contains { $0.text.hasPrefix("another program scans with hci0") })
    #expect(
      found.last?.text == "C5:A1:B2:C3:D4:E5: another Bluetooth program receives the values of temperature")
    #expect(found.last?.remedy?.contains("sudo systemctl restart bluetooth") == true)
    #expect(findings(report, isGatewayRunning: true).allSatisfy { $0.level == .ok })
  }
}

struct RFKillTests {
  @Test func softAndHardBlocksAreFound() throws {
    let folder = try TemporaryFolder()
    mkdir(folder.path + "/rfkill3", 0o700)
    let pattern = folder.path + "/rfkill*"
    try folder.write("0\n", to: "rfkill3/soft")
    try folder.write("0\n", to: "rfkill3/hard")
    #expect(RFKill.block(ofSwitches: pattern) == nil)
    try folder.write("1\n", to: "rfkill3/soft")
    #expect(RFKill.block(ofSwitches: pattern) == .software)
    try folder.write("1\n", to: "rfkill3/hard")
    #expect(RFKill.block(ofSwitches: pattern) == .hardware)
  }

  /// linux/rfkill.h: index (4 bytes), type 2 (Bluetooth), operation 3 (change all), soft 0, hard 0.
  @Test func allBluetoothIsUnblocked() throws {
    let folder = try TemporaryFolder()
    try folder.write("", to: "rfkill")
    #expect(RFKill.unblockBluetooth(by: folder.path + "/rfkill") == nil)
    #expect(try FileProblem.read(folder.path + "/rfkill", limit: 100) == [0, 0, 0, 0, 2, 3, 0, 0])
    #expect(RFKill.unblockBluetooth(by: folder.path + "/none") == "No such file or directory")
  }
}

struct WiFiCheckTests {
  private func raspberryPi(_ frequency: Int?, model: String = "Raspberry Pi 4 Model B Rev 1.4") throws
    -> Finding?
  {
    let folder = try TemporaryFolder()
    let folders = [
      "proc", "proc/device-tree", "sys", "sys/class", "sys/class/bluetooth", "sys/class/bluetooth/hci0",
      "sys/class/bluetooth/hci0/device", "sys/class/bluetooth/hci0/device/tty", "sys/class/net",
      "sys/class/net/wlan0", "sys/class/net/wlan0/wireless",
    ]
    for name in folders { mkdir("\(folder.path)/\(name)", 0o700) }
    try folder.write(model + "\0", to: "proc/device-tree/model")
    return WiFiCheck(adapter: "hci0", root: folder.path, frequency: { $0 == "wlan0" ? frequency : nil }).run()
  }

  @Test func wiFiOn24GHzBesideTheBuiltInAdapterIsAWarning() throws {
    let found = try raspberryPi(2437)
    #expect(found?.text.hasPrefix("wlan0 uses Wi-Fi on 2.4 GHz") == true)
    #expect(found?.level == .warning)
  }

  @Test func unknownHardwareGivesNoFinding() throws {
    #expect(try raspberryPi(5180) == nil)
    #expect(try raspberryPi(nil) == nil)
    #expect(try raspberryPi(2437, model: "Another board") == nil)
  }

  @Test func theFrequencyIsInTheOutputOfIw() {
    let info = "Interface wlan0\n\ttype managed\n\tchannel 6 (2437 MHz), width: 20 MHz, center1: 2437 MHz\n"
    #expect(WiFiCheck.frequency(info) == 2437)
    // Not connected, or not installed.
    #expect(WiFiCheck.frequency("Interface wlan0\n\ttype managed\n") == nil && WiFiCheck.frequency("") == nil)
  }
}

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

struct ConfigurationCheckTests {
  private func result(_ text: String) throws -> (ConfigurationCheck.Outcome, String) {
    let folder = try TemporaryFolder()
    let path = try folder.write(text, to: "config.json")
    return (ConfigurationCheck(path: path).run(), path)
  }

  @Test func validFileIsOK() throws {
    let (result, path) = try result(#"{"mqtt":{"host":"broker"}}"#)
    #expect(result.findings == [.ok(.configuration, "\(path) is valid")])
    #expect(result.configuration.mqtt.host == "broker")
  }

  @Test func whatIsOpenForSetUpIsAWarning() throws {
    let findings = try result(#"{"http":{"port":8000}}"#).0.findings
    #expect(findings.map(\.level) == [.ok, .warning])
    #expect(findings.last?.text == "nothing is set up yet")
  }

  @Test func errorsHaveALineNumber() throws {
    let (result, path) = try result(
      "{\n  \"mqtt\": {\"host\":\"broker\"},\n  \"devices\": [{\"period\": 0}]\n}")
    #expect(result.findings.count == 1)
    #expect(result.findings[0].level == .fault)
    #expect(result.findings[0].text.hasPrefix("\(path):3:"))
    #expect(result.findings[0].remedy != nil)
    // The other sections are used.
    #expect(result.broken == ["devices"])
    #expect(result.configuration.mqtt.host == "broker")
    #expect(!result.isUnreadable)
  }

  @Test func brokenSyntaxMakesTheFileUnreadable() throws {
    let (result, path) = try result("{\"mqtt\": {,}}")
    #expect(result.isUnreadable)
    #expect(result.findings.first?.text.hasPrefix("\(path):1:") == true)
  }

  @Test func missingFileIsAFaultWithARemedy() {
    let result = ConfigurationCheck(path: nil, places: ["/no/such/file"]).run()
    #expect(result.findings.first?.level == .fault)
    #expect(result.findings.first?.remedy?.contains("microbit-gateway init") == true)
    #expect(!result.isUnreadable)
  }

  @Test func missingNamedFileIsUnreadable() {
    let result = ConfigurationCheck(path: "/no/such/file").run()
    #expect(result.isUnreadable)
    #expect(result.findings.first?.level == .fault)
  }
}

struct FindingTests {
  @Test func theRemedyIsOnTheNextLine() {
    #expect(
      Finding.fault(.adapter, "the adapter is off", remedy: "bluetoothctl power on").lines == [
        "fault    adapter         the adapter is off", "                         → bluetoothctl power on",
      ])
    #expect(Finding.ok(.bus, "the system bus answers").lines.count == 1)
  }

  @Test func findingRoundTripsThroughJSON() {
    let finding = Finding.warning(.homeAssistant, "text", remedy: "remedy")
    #expect(Finding(finding.json) == finding)
    #expect(Finding(["check": "home_assistant"]) == nil)
  }
}

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
