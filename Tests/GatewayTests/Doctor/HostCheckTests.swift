import Configuration
import Findings
import GATT
import Glibc
import JSON
import Log
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
