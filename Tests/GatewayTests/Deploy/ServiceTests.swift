import TestSupport
import Testing

@testable import Gateway

/// The shipped systemd unit suits the gateway.
@Suite struct ServiceTests {
  @Test func hiddenFoldersMatchTheServiceUnit() throws {
    let unit = String(decoding: try shipped("deploy/microbit-gateway.service"), as: UTF8.self)
    #expect(unit.contains("\nProtectHome=yes\n") && unit.contains("\nPrivateTmp=yes\n"))
    // systemd.exec(5): ProtectHome= hides the first three, PrivateTmp= the last two.
    #expect(ServiceAccess.hidden == ["/home", "/root", "/run/user", "/tmp", "/var/tmp"])
  }

  @Test func containersHaveTheCertificatesOfAuthorities() throws {
    for file in ["deploy/Containerfile", "deploy/home-assistant/app/Dockerfile"] {
      let install = String(decoding: try shipped(file), as: UTF8.self).split(separator: "apt-get install")[1]
      #expect(install.split { $0 == " " || $0 == "\n" }.contains("ca-certificates"), "\(file)")
    }
  }
}
