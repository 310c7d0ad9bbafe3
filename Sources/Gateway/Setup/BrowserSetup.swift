import Configuration
import Devices
import EventLoop
import Findings
import JSON
import Web

/// Set-up in a browser, of a gateway that is not set up: the page's answers become those of `init`.
@LoopActor final class BrowserSetup: SetupHost {
  /// How long browsers can still learn that the gateway was set up.
  private static let farewell = Duration.seconds(3)

  private let path: String
  private let id: GatewayID
  private let engine: DeviceManager
  private unowned let host: any PageHost
  private let startAgain: () -> Void
  private var site: SetupSite?

  /// - Parameters:
  ///   - host: must outlive this.
  ///   - startAgain: called once the answers are kept.
  init(
    _ file: ConfigurationFile, _ id: GatewayID, _ engine: DeviceManager, host: any PageHost,
    startAgain: @escaping () -> Void
  ) {
    (path, self.id, self.engine, self.host) = (file.path, id, engine, host)
    self.startAgain = startAgain
    site = SetupSite(file.configuration.http, host: self)
  }

  /// Whether the answers could be written: by this process, or by the service's manager before it starts it again.
  static func isPossible(_ file: ConfigurationFile) -> Bool {
    !file.isSetUp && PendingSetup() != nil
      && (PendingSetup.isApplied(to: file.path) || SetupFiles(path: file.path).problem == nil)
  }

  func open() -> Result<JSONValue, RequestError> {
    site?.open() ?? .failure(RequestError("the gateway is set up"))
  }

  func close() {
    site?.close()
    site = nil
  }

  // MARK: Host

  var situation: JSONValue {
    let inRange = engine.devices.filter { $0.session != .absent }
    let findings = engine.findings.filter {
      [.bus, .bluetoothd, .adapter].contains($0.check) && $0.level != .ok
    }
    return [
      "broker": .bool(host.info.broker.connectedSince != nil), "area": host.info.area.map(JSONValue.string),
      "findings": .array(findings.map(\.json)),
      "devices": .array(
        inRange.map {
          ["name": .string($0.name ?? $0.id.description), "rssi": $0.rssi.map(JSONValue.integer)]
        }),
    ]
  }

  func submit(_ answers: JSONValue) async -> JSONValue? {
    let (path, id) = (path, id)
    do {
      let submission = try SetupSubmission(answers)
      let configuration = try await EventLoop.blocking {
        try submission.answers(PresentConfiguration(readingFrom: path)).configuration()
      }
      if !submission.insists {
        let check = ClusterCheck(configuration: configuration, gateway: id, patience: .seconds(5))
        let faults = await check.run().filter { $0.level == .fault }
        if !faults.isEmpty { return ["reason": "broker", "findings": .array(faults.map(\.inWords))] }
      }
      // Set up elsewhere while the broker was tried.
      guard site != nil else { return ["reason": "invalid", "text": "the gateway is set up"] }
      try await EventLoop.blocking { try PendingSetup()?.store(answers) }
    } catch {
      return ["reason": "invalid", "text": .string((error as? CommandFailure)?.text ?? "\(error)")]
    }
    loop.timer(after: Self.farewell) { [startAgain] in startAgain() }
    return nil
  }
}

extension Finding {
  /// The text for someone who has filled in a form.
  fileprivate var inWords: JSONValue {
    json.setting("remedy", to: remedy.map { .string(Setup.inWords($0)) })
  }
}
