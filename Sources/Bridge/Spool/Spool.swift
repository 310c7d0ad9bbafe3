import Configuration
import EventLoop
import Findings
import Log
import MQTT
import Store

/// Keeps the readings that the broker has not acknowledged, through outages and restarts, and publishes them later.
@LoopActor final class Spool {
  private static let log = Logger(component: "spool")
  /// The time from the first message to the transaction, so that there are few transactions.
  private static let gather = Duration.seconds(1)
  /// The time between the messages sent together, unless acknowledgements make room for more.
  private static let tick = Duration.milliseconds(20)
  /// While more waits for the socket, the broker is slow already.
  private static let mostQueued = 1000

  /// The most time for a piece of work until it is reported that the disk does not answer; shorter only in tests.
  var patience = Duration.seconds(20)
  private let context: BridgeContext
  private let file: SpoolFile?
  private var queue: SpoolQueue
  /// Called when what waits has changed.
  var onChange: () -> Void = {}
  private var writeTimer: LoopTimer?
  private var sendTimer: LoopTimer?
  private var working: Task<Void, Never>?
  /// Why the file cannot be used; nil: it can.
  private var failure: String?
  /// Reported, until it has ended.
  private var isLosing = false
  private var lost: UInt64 = 0
  private var resumption: LoopTimer?
  /// Messages accepted, and rejected for good, since the connection was made, until it is reported.
  private var (published, rejected) = (0, 0)

  /// - Parameter path: of the file; nil: all is kept in memory.
  init(_ options: Configuration.Spool, path: String?, _ context: BridgeContext) {
    self.context = context
    file = path.map {
      SpoolFile(path: $0, maxAge: Int64(options.maxAge), maxBytes: Int64(options.maxSize))
    }
    queue = SpoolQueue(hasFile: file != nil, rate: options.rate)
  }

  /// What waits, for `info`.
  var status: SpoolStatus {
    SpoolStatus(
      messages: queue.messages, bytes: queue.bytes,
      oldest: queue.oldest.map { Timestamp(milliseconds: $0) }, lost: queue.lost)
  }

  var finding: Finding? {
    failure.map {
      Finding.fault(
        .state,
        "the spool cannot be used: undelivered readings are in memory, and lost when the gateway stops: \($0)",
        remedy: Finding.stateRemedy
      ).coded("spool_not_writable", ["reason": $0])
    }
  }

  // MARK: Inputs

  /// Looks into the file, which an earlier run may have left.
  func start() { work() }

  /// Messages may be published.
  /// - Parameter receiveMaximum: how many the broker takes unacknowledged.
  func connected(receiveMaximum: Int) {
    (published, rejected, isLosing) = (0, 0, false)
    resumption?.cancel()
    queue.connected(receiveMaximum: receiveMaximum)
    work()
  }

  /// The gateway is stopping: what is sent may still be acknowledged.
  func pause() { queue.pause() }

  func disconnected() {
    queue.disconnected()
    work()
  }

  /// Readings, and messages of the spool itself, that were not acknowledged.
  func undelivered(_ messages: [MQTTMessage]) {
    if messages.contains(where: { $0.number != nil }) { queue.rewind() }
    for message in messages where message.number == nil { add(message) }
    work()
  }

  /// The broker has refused this reading, or message of the spool itself, for now.
  func refused(_ message: MQTTMessage) {
    if let number = message.number {
      if let delay = queue.refused(number) { resumption = later(delay) { $0.queue.resume() } }
    } else {
      add(message)
    }
    work()
  }

  private func add(_ message: MQTTMessage) {
    queue.add(
      topic: Array(message.topic.string.utf8), payload: ReadingEncoder.markReplayed(message.payload),
      time: Timestamp.now.milliseconds)
  }

  func completed(_ numbers: [Int64], rejected: Int) {
    queue.completed(numbers, rejected: rejected)
    published += numbers.count - rejected
    self.rejected += rejected
    send()
    work()
  }

  /// Writes what is left; for at most `limit`, as a disk may hang.
  func close(within limit: Duration) async {
    _ = await loop.result(within: limit, of: finish)
    if queue.unstored > 0 {
      Self.log.error(
        "undelivered readings are lost: they could not be stored",
        [
          "messages": queue.unstored,
          "reason": failure ?? (file == nil ? "there is no file for them" : "the disk does not answer"),
        ])
    }
  }

  // MARK: Work

  /// Continues after each input.
  private func work() {
    reportLoss()
    reportEnd()
    if let file, let work = queue.nextWork() {
      let limit = loop.timer(after: patience) { [weak self] in self?.stalled() }
      working = loop.task { [weak self] in
        let outcome = await EventLoop.blocking { file.perform(work) }
        limit.cancel()
        self?.finished(outcome)
      }
    }
    if queue.hasMemory, writeTimer?.isPending != true {
      writeTimer = later(Self.gather) { $0.queue.writeMemory() }
    }
    if queue.mayBeSent, sendTimer?.isPending != true {
      sendTimer = later(Self.tick) { $0.send() }
    }
  }

  /// Gives the queue an input after `delay`, and continues.
  @discardableResult
  private func later(_ delay: Duration, _ input: @escaping @LoopActor (Spool) -> Void) -> LoopTimer {
    loop.timer(after: delay) { [weak self] in
      guard let self else { return }
      input(self)
      work()
    }
  }

  private func send() {
    guard context.mqtt.statistics.queued < Self.mostQueued else { return }
    for entry in queue.next(at: .now) {
      guard let topic = TopicName(String(decoding: entry.topic, as: UTF8.self)) else {
        queue.completed([entry.number], rejected: 1)
        rejected += 1
        continue
      }
      context.mqtt.publish(
        MQTTMessage(
          topic: topic, payload: entry.payload, qos: context.qos, undelivered: .returned, number: entry.number
        ))
    }
  }

  private func finished(_ outcome: SpoolFile.Outcome) {
    if let delay = queue.finished(outcome) { later(delay) { $0.queue.retry() } }
    logOutcome(outcome)
    onChange()
    work()
  }

  private func stalled() {
    queue.stalled()
    setFailure("the disk does not answer")
    work()
  }

  private func finish() async {
    queue.disconnected()
    guard let file else { return }
    queue.retry()
    work()
    while queue.isWorking { await working?.value }
    await EventLoop.blocking { file.close() }
  }

  // MARK: Log

  private func logOutcome(_ outcome: SpoolFile.Outcome) {
    if let aside = outcome.setAside {
      Self.log.error(
        "the spool was damaged: it was renamed, and a new one created",
        [
          "moved_to": aside.path, "reason": aside.reason,
          "lost": outcome.lost == 0 ? "unknown" : "\(outcome.lost)",
        ])
    }
    setFailure(outcome.failure)
  }

  private func setFailure(_ reason: String?) {
    if let reason, failure == nil {
      Self.log.error(
        "cannot use the spool: undelivered readings are kept in memory, and it is tried again",
        ["reason": reason])
    } else if reason == nil, failure != nil {
      Self.log.notice("the spool can be used again")
    }
    failure = reason
  }

  private func reportEnd() {
    guard published + rejected > 0, queue.isEmpty else { return }
    if rejected == 0 {
      Self.log.notice("what was not delivered before is published", ["messages": published])
    } else {
      Self.log.warning(
        "of what was not delivered before, the broker has rejected a part",
        ["published": published, "rejected": rejected])
    }
    (published, rejected) = (0, 0)
    onChange()
  }

  private func reportLoss() {
    guard queue.lost > lost else { return }
    lost = queue.lost
    if !isLosing { Self.log.warning("undelivered readings are too many or too old: the oldest are lost") }
    isLosing = true
  }
}

/// What waits for the broker.
package struct SpoolStatus: Sendable, Equatable {
  package let messages: Int
  let bytes: Int64
  /// When the first one was added.
  let oldest: Timestamp?
  package let lost: UInt64
}
