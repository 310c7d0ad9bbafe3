import Configuration
import EventLoop
import Findings
import JSON
import Log
import MQTT
import Store

/// After runs that died of what others have retained at the broker, the gateway does without it, for one run.
@LoopActor final class Caution {
  /// So many runs in a row, each within the trial.
  private static let mostDeaths = 3
  private let trial: Duration

  private let note: CrashNote
  /// Whether this run has taken what others have retained, and lives: its end has another cause.
  private(set) var hasSurvived = false
  private var timer: LoopTimer?

  init(_ note: CrashNote, trial: Duration = .seconds(60)) {
    (self.note, self.trial) = (note, trial)
    // The next run takes everything again, however this one ends.
    if isNeeded { note.survived() }
  }

  private var isNeeded: Bool { note.deaths >= Self.mostDeaths }

  /// Why messages are left out; nil: they are not.
  var finding: Finding? {
    guard isNeeded else { return nil }
    let last = note.topic.map { ", the last one while it handled \(Excerpt($0))" } ?? ""
    return .fault(
      .retained,
      "the last \(note.deaths) runs died within a minute of taking what others have retained at the broker\(last), because of it "
        + "or because they were killed: this run ignores it, and does not know which gateway owns a device",
      remedy: "if they were not killed, clear the message that does not belong there "
        + "(mosquitto_pub -r -n -t TOPIC), and report it; the next start tries again: "
        + "sudo systemctl restart microbit-gateway")
  }

  /// The broker sends what it retains.
  func connected() { note.setTaking(!isNeeded && !hasSurvived) }

  func admitted() {
    timer?.cancel()
    guard !isNeeded else { return }
    timer = loop.timer(after: trial) { [weak self] in
      self?.hasSurvived = true
      self?.note.survived()
    }
  }

  func disconnected() {
    timer?.cancel()
    note.setTaking(false)
  }

  /// The gateway ends by itself: the next run takes everything again.
  func stopped() {
    timer?.cancel()
    note.survived()
  }

  func handling(_ message: MQTTReceived, _ body: () -> Void) { note.handling(message.topic.string, body) }

  /// Whether the message is such as others retain.
  func leavesOut(_ meaning: Inbound?, _ message: MQTTReceived, of gateway: GatewayID) -> Bool {
    guard isNeeded else { return false }
    return switch meaning {
    case .deviceInfo, .deviceAvailability, .fleetConfiguration: true
    case .bridgeState(let other): other != gateway
    case .set, .get, .request, nil: message.retain
    // Whether another gateway has this one's id must be known; retained claims count nowhere.
    case .response, .bridgeInfo, .claim: false
    }
  }
}
