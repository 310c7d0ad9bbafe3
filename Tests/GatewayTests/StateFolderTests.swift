import Testing

@testable import Gateway

@Suite struct StateFolderTests {
  private let everything = [
    "STATE_DIRECTORY": "/var/lib/microbit-gateway", "XDG_STATE_HOME": "/home/me/state", "HOME": "/home/me",
  ]

  private func path(_ changes: [String: String?]) -> String? {
    var environment = everything
    for (name, value) in changes { environment[name] = value }
    return StateFolder.path(environment)
  }

  @Test func systemdsFolderComesFirst() {
    #expect(path([:]) == "/var/lib/microbit-gateway")
    #expect(path(["STATE_DIRECTORY": "/var/lib/a:/var/lib/b"]) == "/var/lib/a")
  }

  @Test(arguments: [nil, "", ":", "lib/microbit-gateway"])
  func thenTheOneOfXDG(systemd: String?) {
    #expect(path(["STATE_DIRECTORY": systemd]) == "/home/me/state/microbit-gateway")
    #expect(path(["STATE_DIRECTORY": systemd, "XDG_STATE_HOME": "/"]) == "/microbit-gateway")
  }

  @Test(arguments: [nil, "", "state", "~/state"])
  func thenTheOneOfTheHome(xdg: String?) {
    let changes = ["STATE_DIRECTORY": nil, "XDG_STATE_HOME": xdg]
    #expect(path(changes) == "/home/me/.local/state/microbit-gateway")
    #expect(path(changes.merging(["HOME": "/root/"]) { $1 }) == "/root/.local/state/microbit-gateway")
  }

  @Test(arguments: [nil, "", "me"])
  func elseThereIsNone(home: String?) throws {
    #expect(path(["STATE_DIRECTORY": nil, "XDG_STATE_HOME": nil, "HOME": home]) == nil)
    let id = try #require(GatewayID("house"))
    #expect(StateFolder.database(of: id, [:]) == nil)
  }

  @Test func aDatabaseIsNamedAfterItsGateway() throws {
    let id = try #require(GatewayID("living-room"))
    #expect(StateFolder.database(of: id, everything) == "/var/lib/microbit-gateway/living-room.db")
  }
}
