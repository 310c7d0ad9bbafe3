import EventLoop
import TestSupport
import Testing

@testable import Gateway

@LoopActor @Suite struct ProfilesTests {
  @Test func installedProfilesAreFoundWithoutBeingConfigured() throws {
    let folder = try TemporaryFolder()
    try folder.write("{}", to: "config.json")
    let path = folder.path + "/config.json"
    func status(_ name: String?, installed: String) throws -> GatewayCommand.ExitStatus {
      try GatewayCommand.profiles(name, path, installed: installed)
    }
    #expect(try status("battery", installed: repositoryPath("deploy/profiles")) == .done)
    #expect(try status(nil, installed: repositoryPath("deploy/profiles")) == .done)
    #expect(try status("wings", installed: repositoryPath("deploy/profiles")) == .usage)
    #expect(try status("battery", installed: folder.path + "/none") == .usage)
    #expect(try status("microbit", installed: folder.path + "/none") == .done)
  }
}
