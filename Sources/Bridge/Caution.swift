import Configuration
import EventLoop
import Findings
import JSON
import Log
import MQTT
import Store

/// After runs that died of what others have retained at the broker, the gateway does without it, for an hour.
@LoopActor final class Caution {
  /// So many runs in a row, each within ``trial``.
  private static let mostDeaths = 3

  private let note: CrashNote
  private let trial: Duration
  private var isNeeded: Bool
  /// Whether this run has taken it, and lived: another connection is no trial.
  private var hasSurvived = false
  private var timer: LoopTimer?

  init(_ note: CrashNote, trial: Duration = .seconds(60)) {
    self.note = note
    self.trial = trial
    isNeeded = note.deaths >= Self.mostDeaths
    // The next run takes everything again, however this one ends.
    if isNeeded { note.survived() }
  }

  /// - Parameter limit: how long a run does without it.
  /// - Parameter takeAll: called when everything is to be taken: nobody may be there to start an unattended gateway again.
  func start(for limit: Duration = .seconds(3600), then takeAll: @escaping @LoopActor () -> Void) {
    guard isNeeded else { return }
    loop.timer(after: limit) { [weak self] in
      self?.isNeeded = false
      takeAll()
    }
  }

  /// Why messages are left out; nil: they are not.
  var finding: Finding? {
    guard isNeeded else { return nil }
    let last = note.topic.map { ", the last one while it handled \(Excerpt($0))" } ?? ""
    return .fault(
      .retained,
      "the last \(note.deaths) runs died within a minute of taking what others have retained at the broker\(last), because of it "
        + "or because they were killed: this run ignores it, and does not know which gateway owns a device",
      remedy: "if they were not killed, clear the message that does not belong there "
        + "(mosquitto_pub -r -n -t TOPIC), and report it; within an hour, or at the next start, it is taken again: "
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

  /// A message of the topic is being handled; nil: none is.
  func handles(_ topic: TopicName?) { note.setHandling(topic?.string ?? "") }

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
