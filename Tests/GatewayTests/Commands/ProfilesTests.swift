import EventLoop
import TestSupport
import Testing

@testable import Gateway

@LoopActor @Suite struct ProfilesTests {
  @Test func installedProfilesAreFoundWithoutBeingConfigured() throws {
    let folder = try TemporaryFolder()
    try folder.write("{}", to: "config.json")
    let path = folder.path + "/config.json"
    func status(_ name: String?, installed: String) -> GatewayCommand.ExitStatus {
      do throws(CommandFailure) {
        try GatewayCommand.profiles(name, path, installed: installed)
        return .done
      } catch {
        return error.status
      }
    }
    #expect(status("battery", installed: repositoryPath("deploy/profiles")) == .done)
    #expect(status(nil, installed: repositoryPath("deploy/profiles")) == .done)
    #expect(status("wings", installed: repositoryPath("deploy/profiles")) == .usage)
    #expect(status("battery", installed: folder.path + "/none") == .usage)
    #expect(status("microbit", installed: folder.path + "/none") == .done)
  }
}
