import TestSupport
import Testing

@testable import Devices
@testable import Gateway

/// The shipped systemd unit suits the gateway.
@Suite struct ServiceTests {
  @Test func openFileLimitSufficesForAllMicrobits() throws {
    let unit = String(decoding: try shipped("deploy/microbit-gateway.service"), as: UTF8.self)
    let limit = try #require(unit.firstMatch(of: /\nLimitNOFILE=(\d+)\n/)?.output.1)
    #expect(try #require(Int(limit)) >= Gateway.mostOpenFiles)
    #expect(Gateway.mostOpenFiles > DeviceManager.capacity)
  }

  @Test func hiddenFoldersMatchTheServiceUnit() throws {
    let unit = String(decoding: try shipped("deploy/microbit-gateway.service"), as: UTF8.self)
    #expect(unit.contains("\nProtectHome=yes\n") && unit.contains("\nPrivateTmp=yes\n"))
    // systemd.exec(5): ProtectHome= hides the first three, PrivateTmp= the last two.
    #expect(ServiceAccess.hidden == ["/home", "/root", "/run/user", "/tmp", "/var/tmp"])
  }
}
