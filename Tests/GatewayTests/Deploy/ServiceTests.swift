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

  /// Without the id of the machine's boot, a message that ends the gateway would end it for ever.
  @Test func idOfTheBootIsReadable() throws {
    let unit = String(decoding: try shipped("deploy/microbit-gateway.service"), as: UTF8.self)
    #expect(!unit.contains("\nProcSubset="), "it hides /proc/sys")
    let profile = String(decoding: try shipped("deploy/home-assistant/app/apparmor.txt"), as: UTF8.self)
    #expect(profile.contains("\n  @{PROC}/sys/kernel/random/boot_id r,\n"))
  }

  @Test func ofAllDevicesTheServiceMayUsePortsOnUSB() throws {
    let unit = String(decoding: try shipped("deploy/microbit-gateway.service"), as: UTF8.self)
    let lines = unit.split(separator: "\n")
    #expect(lines.contains("DevicePolicy=closed") && lines.contains("SupplementaryGroups=dialout"))
    // Root's `setup --apply` writes the other.
    #expect(
      lines.filter { $0.hasPrefix("DeviceAllow=") } == [
        "DeviceAllow=char-166 rw", "DeviceAllow=/dev/rfkill w",
      ])
    // It would hide them.
    #expect(!lines.contains { $0.hasPrefix("PrivateDevices=") })
    let rule = String(decoding: try shipped("deploy/udev/60-microbit-gateway.rules"), as: UTF8.self)
    #expect(rule.contains(#"ATTR{idVendor}=="0d28", ATTR{idProduct}=="0204""#))
    let app = String(decoding: try shipped("deploy/home-assistant/app/config.yaml"), as: UTF8.self)
    #expect(app.contains("\nuart: true\n"))
    let profile = String(decoding: try shipped("deploy/home-assistant/app/apparmor.txt"), as: UTF8.self)
    #expect(profile.contains("\n  /dev/ttyACM* rwk,\n"))
  }

  @Test func containersHaveTheCertificatesOfAuthorities() throws {
    for file in ["deploy/Containerfile", "deploy/home-assistant/app/Dockerfile"] {
      let install = String(decoding: try shipped(file), as: UTF8.self).split(separator: "apt-get install")[1]
      #expect(install.split { $0 == " " || $0 == "\n" }.contains("ca-certificates"), "\(file)")
    }
  }
}
