import Configuration
import EventLoop
import Findings
import JSON
import MQTT
import Store

/// After three runs in a row that died of what others have retained at the broker, the gateway does without it, for an hour.
@LoopActor final class Caution {
  private let note: CrashNote
  private var isNeeded: Bool

  init(_ note: CrashNote) {
    self.note = note
    isNeeded = note.deaths == CrashNote.mostDeaths
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
    guard isNeeded, let topic = note.topic else { return nil }
    return .fault(
      .retained,
      "the last \(note.deaths) runs died while they handled what others have retained at the broker, "
        + "the last one \(Excerpt(topic)): this run ignores it, and does not know which gateway owns a device",
      remedy: "clear the message (mosquitto_pub -r -n -t TOPIC), and report it; within an hour, or at the "
        + "next start, it is taken again: sudo systemctl restart microbit-gateway")
  }

  /// Has a message handled, and remembers for the next run if this one dies of it.
  func noting(_ message: MQTTReceived, _ body: () -> Void) {
    // What is not retained does not arrive again.
    guard message.retain else { return body() }
    note.setHandling(message.topic.string)
    body()
    note.setHandling(nil)
  }

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
