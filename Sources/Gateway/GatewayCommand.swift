import Configuration
import Devices
import EventLoop
import GATT
import Glibc
import JSON
import Log
import Store

/// The exit statuses of all commands, and the commands that have no file of their own.
enum GatewayCommand {
  /// The exit status of the program (sysexits.h).
  enum ExitStatus: Int32, Sendable {
    /// Success; of `run`: stopped by a signal.
    case done = 0
    /// The peripheral has refused, or the output cannot be written; of `doctor`: there are faults.
    case refused = 1
    case usage = 64
    /// No bus, bluetoothd or adapter, no such device, or it is not in range, for a one-shot command.
    case unavailable = 69
    /// config.json or a file of profiles cannot be read.
    case unreadable = 66
    /// config.json has errors.
    case configuration = 78

    /// The exit status for the error of a request.
    init(_ code: RequestError.Code) {
      switch code {
      case .invalid: self = .usage
      case .notFound, .unavailable: self = .unavailable
      case .failed: self = .refused
      }
    }
  }

  /// Runs until SIGTERM or SIGINT.
  @LoopActor static func run(_ path: String?) async throws(CommandFailure) {
    let log = Logger(component: "gateway")
    var file: ConfigurationFile
    do throws(ConfigurationErrors) {
      // The service is started again if the file cannot be read; if it has errors, that would not help.
      file = try ConfigurationFile.load(path: path, filesMayBeAway: true)
      if let pending = PendingSetup() {
        do throws(CommandFailure) {
          for line in try pending.apply(to: file.path) { log.notice("\(line)") }
        } catch {
          log.error("set-up in a browser: \(error.text)")
        }
        file = try ConfigurationFile.load(path: file.path, filesMayBeAway: true)
      }
    } catch {
      throw CommandFailure(error.isUnreadable ? .unreadable : .configuration, error.advice)
    }
    for warning in file.warnings { log.warning("\(warning.description(in: file.path))") }
    let interruption = Interruption([SIGTERM, SIGINT])
    // There is nothing to end until the gateway exists.
    interruption.action = { _ in exit(0) }
    let serviceManager = ServiceManager()
    let silence = loop.timer(after: .seconds(10)) { reportSilentDisk(serviceManager) }
    let id = await EventLoop.blocking { [configuration = file.configuration] in
      StateFolder.gatewayID(of: configuration)
    }
    let state = await openState(of: id, serviceManager, silence)
    if file.configuration.gateway.id == nil { StateFolder.store(id) }
    let gateway = Gateway(file, id, state, serviceManager)
    interruption.action = { _ in gateway.stop() }
    loop.onLoop { loop.signals([SIGHUP]) { _ in gateway.reload() } }
    log.notice(
      "started", ["version": Version.current, "gateway": gateway.id, "configuration": file.path])
    await gateway.serve()
    log.notice("stopped")
    // The service manager starts the service again, and lets root write the configuration before.
    if gateway.startsAgain, !PendingSetup.isApplied(to: file.path) { ProgramArguments.startAgain() }
  }

  @LoopActor private static func reportSilentDisk(_ serviceManager: ServiceManager) {
    let wait = "waiting for the disk of the state folder, which does not answer"
    Logger(component: "state").error(
      "\(wait): see sudo dmesg | tail", ["folder": StateFolder.path(StateFolder.environment) ?? ""])
    // systemd would end a service that is not ready in time.
    serviceManager.ready()
    serviceManager.status(wait)
  }

  /// Opens the state database. While another process uses it, such as a gateway with this id that is still stopping,
  /// waits for its end: what that one writes last is read then. Also waits while the file cannot be read: without the names and
  /// ids in it the gateway would clear topics, and publish the devices under others.
  /// - Parameter silence: the timer that reports a disk which does not answer.
  @LoopActor private static func openState(
    of id: GatewayID, _ serviceManager: ServiceManager, _ silence: LoopTimer
  ) async -> StateDatabase {
    let path = StateFolder.path(of: .database, id)
    let log = Logger(component: "state")
    var reported: String?
    while true {
      let state = await StateDatabase.open(path: path)
      silence.cancel()
      let (level, wait, advice, reason): (LogLevel, String, String, String)
      switch state.opening {
      case .inUse(let cause):
        (level, wait, reason) = (.warning, "waiting for another gateway with this id to end", cause)
        advice = "; if it is to go on, set another gateway.id in config.json"
      case .unreadable(let cause):
        (level, wait, reason) = (.error, "waiting until the state database can be read", cause)
        advice = ", as it has the devices' names and ids; to go on without them, move it away"
      case .opened, .setAside, .newer, .inMemoryOnly: return state
      }
      if wait != reported { log.write(level, wait + advice, ["gateway": id, "reason": reason]) }
      // systemd would end a service that is not ready in time.
      if reported == nil { serviceManager.ready() }
      serviceManager.status(wait)
      reported = wait
      try? await loop.sleep(for: .seconds(1))
    }
  }

  /// Checks the configuration, and prints what holds.
  @LoopActor static func check(_ path: String?) async throws(CommandFailure) {
    let file: ConfigurationFile
    do throws(ConfigurationErrors) {
      file = try ConfigurationFile.load(path: path)
    } catch {
      throw CommandFailure(.configuration, error.advice)
    }
    for warning in file.warnings { printError(warning.description(in: file.path)) }
    let unreadable = (try? ConfigurationCheck(path: path).serviceFindings(file)) ?? []
    for finding in unreadable { printError(finding.line) }
    if unreadable.isEmpty { printOutput("\(file.path): valid") }
    let id = StateFolder.gatewayID(of: file.configuration)
    if let finding = StateFolder.unknownID(of: file.configuration) { printError(finding.line) }
    let state = state(of: id)
    let stored = StoredGateway(
      configuration: withFleet(file, state), id: id, records: DeviceRecord.records(state?["devices"] ?? [:]))
    printOutput("\n\(CheckReport(stored: stored, document: file.document))")
    let http = file.configuration.http
    if let open = ConfigurationCheck.setUpIsOpen(file) { printOutput("\n\(open.line)") }
    if http.isEnabled {
      printOutput("\nthe page of a running gateway: \(http.urls().joined(separator: ", "))")
    }
    for running in GatewayAccess.all(id.description) {
      await running.warnOfChangedConfiguration()
      running.close()
    }
    if !unreadable.isEmpty { throw CommandFailure(.configuration) }
  }

  /// The configuration with the fleet's, if it is in force. Prints which that is.
  /// - Parameter state: the sections of the state database; nil: they cannot be read.
  @LoopActor private static func withFleet(
    _ file: ConfigurationFile, _ state: [String: [String: [UInt8]]]?
  ) -> Configuration {
    guard file.configuration.fleet else { return file.configuration }
    guard let state else {
      printError("fleet: what was received is not known, as the state database cannot be read")
      return file.configuration
    }
    do throws(ConfigurationErrors) {
      guard let stored = state[Fleet.section]?[Fleet.key] else {
        printOutput("fleet: no configuration was received")
        return file.configuration
      }
      let fleet = try FleetConfiguration.read(stored)
      let merged = try fleet.merged(into: file)
      printOutput(
        "fleet: version \(fleet.version): \(fleet.entryCount) entries, \(fleet.profileCount) profiles")
      let overridden = fleet.overridden(by: file).map(\.description)
      if !overridden.isEmpty {
        let more = overridden.count > 10 ? " and \(overridden.count - 10) more" : ""
        printOutput(
          "fleet: config.json has its own for \(overridden.prefix(10).joined(separator: ", "))\(more)")
      }
      return merged
    } catch {
      printError("fleet: \(error.summary)")
      return file.configuration
    }
  }

  /// The sections of the state database; nil: it cannot be read. Prints which file that is.
  @LoopActor private static func state(of id: GatewayID) -> [String: [String: [UInt8]]]? {
    guard let database = StateFolder.databaseToRead(id, StateFolder.environment) else {
      printOutput(
        "state database: no folder; set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path")
      return [:]
    }
    if let ofService = database.ofService {
      printError(
        "the service has its own, \(ofService) "
          + "(to see that one: sudo STATE_DIRECTORY=\(StateFolder.service) microbit-gateway check)")
    }
    do throws(StoreError) {
      let sections = try StateDatabase.sections(path: database.path)
      let owner = FileProblem.status(database.path)?.st_uid
      let user = owner.map { " (of the user \(FileProblem.name(ofUser: $0)))" } ?? ""
      printOutput("state database: \(database.path)\(database.isThere ? user : " (not created yet)")")
      return sections
    } catch {
      let isDenied = access(database.path, R_OK) != 0 && errno == EACCES
      printError("state database: \(error)\(isDenied ? " (run check with sudo)" : "")")
      return nil
    }
  }

  /// Writes the configuration with what was answered in a browser.
  @LoopActor static func applySetup(_ path: String?) throws(CommandFailure) {
    let path = path ?? ConfigurationFile.service
    PendingSetup.noteApplied(to: path)
    for line in try PendingSetup()?.apply(to: path) ?? [] { printOutput(line) }
  }

  /// Prints the profile of this name as JSON; nil: lists the profiles.
  /// - Parameter folder: that of the installed profiles.
  @LoopActor static func profiles(
    _ name: String?, _ path: String?, installed folder: String = Profile.installedDirectory
  ) throws(CommandFailure) {
    var profiles = Profile.builtIn
    // A built-in profile needs no configuration.
    if !profiles.contains(where: { $0.name == name }) {
      profiles += try StoredGateway(configuredBy: path).configuration.profiles
    }
    let used = Set(profiles.map(\.name))
    let installed = (try? ProfilesDirectory.profiles(in: folder)) ?? []
    let others = installed.filter { !used.contains($0.name) }
    let note = "to use it, name its folder in config.json: \"profiles_directory\": \"\(folder)\""
    guard let name else {
      for profile in profiles + others {
        let properties = profile.properties.map(\.name).joined(separator: ", ")
        printOutput("\(profile.name): \(properties)\(used.contains(profile.name) ? "" : " (installed)")")
      }
      if !others.isEmpty { printError("(installed): \(note)") }
      return
    }
    guard let profile = (profiles + others).first(where: { $0.name == name }), let json = profile.json else {
      let all = (profiles + others).map(\.name).joined(separator: ", ")
      throw CommandFailure(.usage, "there is no profile \(Excerpt(name)); there are \(all)")
    }
    if !used.contains(name) { printError("\(name) is installed; \(note)") }
    printOutput(JSONValue.object(of: [(name, json)]).text())
  }

  @LoopActor static func checkProfiles(_ file: String) throws(CommandFailure) {
    do throws(ConfigurationErrors) {
      let content = try ProfilesDirectory.read(file)
      for warning in content.warnings { printError(warning.description(in: file)) }
      printOutput("\(file): valid: \(content.profiles.map(\.name).joined(separator: ", "))")
    } catch {
      throw CommandFailure(.configuration, error.description)
    }
  }
}

extension ConfigurationErrors {
  /// The errors, and what to do if a file is closed to this user.
  var advice: String {
    errors.contains(where: \.isDenied)
      ? "\(self)\nThe user \(FileProblem.name(ofUser: geteuid())) may not read it: use sudo, or change the owner of the file."
      : description
  }
}
