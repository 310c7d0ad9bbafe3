import BlueZ
import Bridge
import Configuration
import Devices
import EventLoop
import GATT
import Glibc
import HomeAssistant
import Log
import Store

/// What the program can be asked to do: the one call that the command line makes.
public enum GatewayCommand: Sendable, Equatable {
  /// Run until SIGTERM or SIGINT.
  case run(configuration: String?)
  /// Read the configuration, and say what is wrong with it.
  case check(configuration: String?)
  /// List the peripherals in reach.
  case scan(timeout: Duration, json: Bool)
  /// Print the version.
  case version

  /// The exit status of the program (sysexits.h).
  public enum ExitStatus: Int32, Sendable {
    /// It did what it was to do; of a gateway: it was told to stop.
    case done = 0
    /// The command line is not understood.
    case usage = 64
    /// A service that a one-shot command needs is missing: the bus, bluetoothd, the adapter.
    case unavailable = 69
    /// config.json cannot be read, or is wrong.
    case configuration = 78
  }

  /// Does it, and returns when the process shall end with that status. Results go to standard output, complaints to
  /// standard error. Called once, with signals blocked already (``Signals/block(_:)``).
  public func execute(on loop: EventLoop) async -> ExitStatus {
    switch self {
    case .run(let path): await Self.run(path, on: loop)
    case .check(let path): Self.check(path)
    case .scan(let timeout, let json): await Scan(timeout: timeout, asJSON: json, loop: loop).run()
    case .version: Self.version()
    }
  }

  private static func run(_ path: String?, on loop: EventLoop) async -> ExitStatus {
    guard let file = load(path) else { return .configuration }
    let log = Logger(component: "gateway")
    for warning in file.warnings { log.warning("\(warning.description(in: file.path))") }
    OpenFiles.allow(Gateway.mostOpenFiles)
    let gateway = Gateway(file, loop: loop)
    loop.onLoop {
      loop.signals([SIGTERM, SIGINT]) { _ in gateway.stop() }
      loop.signals([SIGHUP]) { _ in gateway.assumeIsolated { $0.reload() } }
    }
    log.notice(
      "started", ["version": Version.current, "gateway": gateway.id, "configuration": file.path])
    await gateway.serve()
    log.notice("stopped")
    return .done
  }

  private static func check(_ path: String?) -> ExitStatus {
    guard let file = load(path) else { return .configuration }
    for warning in file.warnings { complain(warning.description(in: file.path)) }
    print("\(file.path): valid")
    let id = file.configuration.gateway.id ?? .ofThisHost
    let state = state(of: id)
    let report = CheckReport(
      file.configuration, document: file.document, records: DeviceRecord.records(state["devices"] ?? [:]),
      deleted: HomeAssistantDiscovery.deletedDevices(state["home_assistant"] ?? [:]), gateway: id)
    print("\n\(report)")
    return .done
  }

  /// The sections of the state database. Prints which file that is.
  private static func state(of id: GatewayID) -> [String: [String: [UInt8]]] {
    guard let database = StateFolder.checked(id, StateFolder.environment) else {
      print("state database: no folder; set STATE_DIRECTORY, XDG_STATE_HOME or HOME")
      return [:]
    }
    if let ofService = database.ofService {
      complain(
        "the service has its own, \(ofService) "
          + "(to see that one: sudo STATE_DIRECTORY=\(StateFolder.service) microbit-gateway check)")
    }
    do throws(StoreError) {
      let sections = try StateDatabase.sections(path: database.path, schema: .gateway(id))
      print("state database: \(database.path)\(database.isThere ? "" : " (not created yet)")")
      return sections
    } catch {
      let isDenied = access(database.path, R_OK) != 0 && errno == EACCES
      complain("state database: \(error)\(isDenied ? " (run check with sudo)" : "")")
      return [:]
    }
  }

  private static func version() -> ExitStatus {
    print("microbit-gateway \(Version.current)")
    return .done
  }

  /// The configuration, or nil after saying what is wrong with it.
  private static func load(_ path: String?) -> ConfigurationFile? {
    do throws(ConfigurationFailure) {
      return try ConfigurationFile.load(path: path)
    } catch {
      complain("\(error)")
      return nil
    }
  }
}

/// A line on standard error, for the person at the terminal.
public func complain(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = write(2, bytes, bytes.count)
}
