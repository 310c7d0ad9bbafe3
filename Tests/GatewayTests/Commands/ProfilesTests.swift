import TestSupport
import Testing

@testable import Gateway

@Suite struct ProfilesTests {
  @Test func installedProfilesAreFoundWithoutBeingConfigured() throws {
    let folder = try TemporaryFolder()
    try folder.write("{}", to: "config.json")
    let path = folder.path + "/config.json"
    func status(_ name: String?, installed: String) -> GatewayCommand.ExitStatus {
      GatewayCommand.profiles(name, path, installed: installed)
    }
    #expect(status("battery", installed: repositoryPath("deploy/profiles")) == .done)
    #expect(status(nil, installed: repositoryPath("deploy/profiles")) == .done)
    #expect(status("wings", installed: repositoryPath("deploy/profiles")) == .configuration)
    #expect(status("battery", installed: folder.path + "/none") == .configuration)
    #expect(status("microbit", installed: folder.path + "/none") == .done)
  }
}
