import Configuration
import EventLoop
import Glibc
import Sockets
import TestSupport
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

  @Test("After su, root does not use the folder of another user's sockets", .enabled(if: geteuid() == 0))
  func runtimeFolderOfAnotherUser() throws {
    let folder = try TemporaryFolder()
    let environment = ["XDG_RUNTIME_DIR": folder.path, "HOME": "/root"]
    #expect(RuntimeFolder.path(environment) == "\(folder.path)/microbit-gateway")
    #expect(chown(folder.path, 1, 1) == 0)
    #expect(RuntimeFolder.path(environment) == "/root/.local/state/microbit-gateway")
  }

  /// One that a user has started beside the service has the same id, that of the host.
  @Test @LoopActor func everyGatewayWithTheIDIsAsked() throws {
    let folder = try TemporaryFolder()
    let sockets = try ["microbit-gateway", "service"].map { name in
      mkdir(folder.path + "/" + name, 0o700)
      return try UnixSocket.listen(at: "\(folder.path)/\(name)/here.sock", mode: 0o600)
    }
    defer { for socket in sockets { close(socket) } }
    let running = GatewayAccess.all(
      "here", ["XDG_RUNTIME_DIR": folder.path], service: folder.path + "/service")
    #expect(running.map(\.isOfService) == [false, false] && running.map(\.gateway) == ["here", "here"])
    for gateway in running { gateway.close() }
  }

  @Test func systemdStateDirectoryIsUsedFirst() {
    #expect(path([:]) == "/var/lib/microbit-gateway")
    #expect(path(["STATE_DIRECTORY": "/var/lib/a:/var/lib/b"]) == "/var/lib/a")
    #expect(path(["STATE_DIRECTORY": "lib/a"]) == "lib/a".absolutePath)
  }

  @Test(arguments: [nil, "", ":"])
  func xdgStateHomeIsUsedWithoutStateDirectory(systemd: String?) {
    #expect(path(["STATE_DIRECTORY": systemd]) == "/home/me/state/microbit-gateway")
    #expect(path(["STATE_DIRECTORY": systemd, "XDG_STATE_HOME": "/"]) == "/microbit-gateway")
  }

  @Test(arguments: [nil, "", "state", "~/state"])
  func homeIsUsedWithoutXDGStateHome(xdg: String?) {
    let changes = ["STATE_DIRECTORY": nil, "XDG_STATE_HOME": xdg]
    #expect(path(changes) == "/home/me/.local/state/microbit-gateway")
    #expect(path(changes.merging(["HOME": "/root/"]) { $1 }) == "/root/.local/state/microbit-gateway")
  }

  @Test(arguments: [nil, "", "me"])
  func noFolderWithoutHome(home: String?) throws {
    #expect(path(["STATE_DIRECTORY": nil, "XDG_STATE_HOME": nil, "HOME": home]) == nil)
    let id = try #require(GatewayID("house"))
    #expect(StateFolder.path(of: .database, id, [:]) == nil)
  }

  @Test func recordingsAreThoseOfTheGatewayThatAnswers() throws {
    let id = try #require(GatewayID("house"))
    func folder(isOfService: Bool, _ state: String? = nil) -> String? {
      var environment = ["HOME": "/home/me"]
      environment["STATE_DIRECTORY"] = state
      return StateFolder.recordings(of: id, environment, isOfService: isOfService)
    }
    #expect(folder(isOfService: true) == "/var/lib/microbit-gateway/house.recordings")
    #expect(folder(isOfService: false) == "/home/me/.local/state/microbit-gateway/house.recordings")
    #expect(folder(isOfService: true, "/data") == "/data/house.recordings")
  }

  /// `check` at a terminal: the user's own database, the service's, or the one in STATE_DIRECTORY.
  @Test func checkReadsTheDatabaseInUse() throws {
    let id = try #require(GatewayID("house"))
    let folder = try TemporaryFolder()
    let service = folder.path + "/service"
    let own = folder.path + "/microbit-gateway/house.db"
    let environment = ["XDG_STATE_HOME": folder.path]
    func checked(_ more: [String: String] = [:]) -> [String?] {
      let found = StateFolder.databaseToRead(id, environment.merging(more) { $1 }, service: service)
      return [found?.path, found.map { "\($0.isThere)" }, found?.ofService]
    }
    #expect(checked() == [own, "false", nil])
    mkdir(service, 0o700)
    #expect(checked() == [own, "false", nil])
    try folder.write("", to: "service/house.db")
    #expect(checked() == [service + "/house.db", "true", nil])
    let named = folder.path + "/named"
    #expect(checked(["STATE_DIRECTORY": named]) == [named + "/house.db", "false", nil])
    mkdir(folder.path + "/microbit-gateway", 0o700)
    try folder.write("", to: "microbit-gateway/house.db")
    #expect(checked() == [own, "true", service + "/house.db"])
    #expect(StateFolder.databaseToRead(id, [:], service: service)?.path == service + "/house.db")
    #expect(StateFolder.databaseToRead(id, [:], service: named) == nil)
  }

  @Test func theIDIsThatOfTheFirstStartOrOfTheRunningService() throws {
    let folder = try TemporaryFolder()
    let environment = ["XDG_STATE_HOME": folder.path]
    func id(_ more: [String: String] = [:], _ configuration: Configuration = Configuration()) -> String {
      StateFolder.gatewayID(
        of: configuration, environment.merging(more) { $1 }, service: folder.path + "/service",
        runtime: folder.path + "/runtime"
      ).description
    }
    let host = GatewayID.ofThisHost.description
    #expect(id() == host)
    for name in ["runtime", "service", "microbit-gateway"] { mkdir("\(folder.path)/\(name)", 0o700) }
    // Most users see no more of the service than its socket.
    try folder.write("", to: "runtime/attic.sock")
    #expect(id() == "attic" && id(["STATE_DIRECTORY": folder.path + "/other"]) == host)
    try folder.write("cellar\n", to: "service/gateway-id")
    #expect(id() == "cellar")
    StateFolder.store(try #require(GatewayID("own")), environment)
    #expect(id() == "own")
    var configured = Configuration()
    configured.gateway.id = GatewayID("configured")
    #expect(id([:], configured) == "configured")
  }

  @Test func serviceFolderMatchesTheUnit() throws {
    let unit = String(decoding: try shipped("deploy/microbit-gateway.service"), as: UTF8.self)
    let name = try #require(unit.firstMatch(of: /\nStateDirectory=(\S+)\n/)?.output.1)
    #expect(StateFolder.service == "/var/lib/\(name)")
  }

  @Test func aDatabaseIsNamedAfterItsGateway() throws {
    let id = try #require(GatewayID("living-room"))
    #expect(StateFolder.path(of: .database, id, everything) == "/var/lib/microbit-gateway/living-room.db")
  }
}
