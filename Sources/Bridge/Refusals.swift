import EventLoop
import Findings
import MQTT

/// What the broker does not take of this gateway's messages, and what it does not send. Pure.
///
/// A message that was rejected counts for ``lasting``, or until the next connection; a state is sent again before that.
struct Refusals {
  static let lasting = Duration.seconds(300)

  private struct Rejection {
    let topic: TopicName
    let reason: MQTTRefusal
    var time: Moment

    func lasts(at now: Moment) -> Bool { time.duration(to: now) < Refusals.lasting }
  }

  /// The first message that was rejected for its size, and the first one for another reason; `time` is that of the last one.
  private var tooLarge: Rejection?
  private var rejected: Rejection?
  /// Until what the broker has refused is sent again: a quota may be exceeded for a moment, and an access control list is corrected
  /// without an end of the connection. Shorter only in tests.
  var delays = BackOff(first: .seconds(30), longest: Refusals.lasting - .seconds(60), spread: 0)
  /// When the last of these delays ends.
  private var repetition: Moment?

  /// - Returns: whether there is a finding that was not there before.
  mutating func publicationRefused(_ topic: TopicName, _ reason: MQTTRefusal, at now: Moment) -> Bool {
    let isSize = reason.isOfSize
    let last = (isSize ? tooLarge : rejected).flatMap { $0.lasts(at: now) ? $0 : nil }
    var new = last ?? Rejection(topic: topic, reason: reason, time: now)
    new.time = now
    if isSize { tooLarge = new } else { rejected = new }
    return last == nil
  }

  /// The broker has refused something that may be sent again.
  /// - Returns: when to send it.
  mutating func delay(at now: Moment) -> Duration {
    // What was sent again was taken.
    if let repetition, repetition.duration(to: now) > Self.lasting { delays.reset() }
    let delay = delays.next()
    repetition = now + delay
    return delay
  }

  /// The subscriptions are made, and all state is published again.
  mutating func connected() {
    delays.reset()
    self = Refusals(delays: delays)
  }

  /// - Parameters:
  ///   - isDeaf: whether messages that the gateway sends to itself do not come back.
  ///   - subscription: one that the broker refuses.
  ///   - isMQTT5: whether the broker gives the reason for which it refuses a subscription.
  ///   - remedy: what to allow.
  func findings(
    isDeaf: Bool, subscription: (filter: TopicFilter, reason: MQTTRefusal)? = nil, isMQTT5: Bool = true,
    remedy: String, at now: Moment
  ) -> [Finding] {
    func remedyOf(_ reason: MQTTRefusal) -> String {
      reason == .notAuthorized
        ? "\(remedy); what else is refused: sudo microbit-gateway doctor"
        : "see the broker's log; sudo microbit-gateway doctor"
    }
    func fault(_ rejection: Rejection?, _ text: String, _ code: String, remedy: String? = nil) -> Finding? {
      guard let rejection, rejection.lasts(at: now) else { return nil }
      let reason = "\(rejection.topic): \(rejection.reason)"
      return .fault(.topics, "\(text), such as \(reason)", remedy: remedy ?? remedyOf(rejection.reason))
        .coded(code, ["reason": reason])
    }
    var findings = [
      fault(rejected, "the broker rejects messages of this gateway", "messages_rejected"),
      fault(
        tooLarge, "the broker drops messages for their size", "messages_too_large",
        remedy: Finding.sizeRemedy),
    ].compactMap { $0 }
    if isDeaf || subscription != nil {
      let reason = subscription.map { ": it refuses the subscription to \($0.filter): \($0.reason)" } ?? ""
      findings.append(
        .fault(
          .topics, "the broker does not let this gateway receive commands and requests\(reason)",
          remedy: remedyOf(isMQTT5 ? subscription?.reason ?? .notAuthorized : .notAuthorized)
        ).coded("nothing_received", [:]))
    }
    return findings
  }
}

extension Finding {
  /// For a broker that does not take messages of the size that a gateway sends.
  package static let sizeRemedy =
    "in mosquitto.conf leave out max_packet_size and message_size_limit, or set both to 1000000 or more, and restart it"

  /// The lines of mosquitto's access control list that allow topics.
  /// - Parameters:
  ///   - base: nil: those of the gateway are allowed.
  ///   - prefix: Home Assistant's; nil: nothing is announced.
  package static func aclRemedy(base: String?, prefix: String?, user: String?) -> String {
    let lines =
      (base.map { ["topic readwrite \($0)/#"] } ?? [])
      + (prefix.map { ["topic readwrite \($0)/device/#", "topic read \($0)/status"] } ?? [])
    let whom = user.map { " for the user \($0)" } ?? ""
    return "allow in the broker's access control list\(whom): \(lines.joined(separator: "; "))"
  }
}
