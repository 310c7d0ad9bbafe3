import Configuration
import Devices
import EventLoop

/// The document of a device, or of the gateway, as it was published last, and whether it is to be published again. Pure.
struct PublishedDocument: Equatable, Sendable {
  enum Action: Equatable, Sendable {
    /// Publish the document again.
    case announce
    /// What was announced is another gateway's to remove.
    case forget
    /// Tell the user that the other gateway announces the device again and again.
    case report
  }

  /// What is the case at this gateway when a document of another one arrives.
  struct Here: Sendable {
    let gateway: GatewayID
    let owner: Owner
    let isOnline: Bool
    /// How many times another gateway's `info` of the device has arrived.
    let notices: Int
  }

  /// The pause between two documents of one device: Home Assistant loses parts of one that comes while it sets up the
  /// entities of the one before.
  private static let pause = Duration.seconds(1)

  /// The hash of the last document; nil: none was published, or it was cleared.
  private var hash: Int?
  private var time: Moment?
  /// Whether the document is published again, even the same.
  private var isDue = false
  /// Whether the broker has refused the last document.
  private(set) var isRefused = false
  /// What may exist in Home Assistant if it has not received the last document.
  var announced: Announced?
  /// The entities that the documents so far have removed so that others can have their keys.
  private(set) var removed: Set<Announced.Component> = []
  /// How often the document was published again because another gateway had announced the device, since ``repeatedAt``
  /// notices had arrived.
  private var repeats = 0
  private var repeatedAt = 0
  /// The document of another gateway stays until its `info` arrives: so many notices had arrived.
  private var yieldedAt: Int?
  /// The document of another gateway stays until the device is online here.
  private var isDueOnline = false

  /// Whether the next one has to wait.
  func isPausing(at now: Moment) -> Bool { time.map { $0.duration(to: now) < Self.pause } ?? false }

  /// - Parameter here: nil: it is the gateway's.
  /// - Returns: whether a document with this hash is to be published; it is then the last one.
  mutating func publish(_ hash: Int, at now: Moment, _ here: Here? = nil) -> Bool {
    let isSame = hash == self.hash
    let isTakenBack = here.map { isDueOnline && $0.isOnline || (yieldedAt ?? $0.notices) != $0.notices }
    if isSame, !isDue, isTakenBack != true { return false }
    self = Self(
      hash: hash, time: now, removed: removed, repeats: isSame ? repeats : 0, repeatedAt: repeatedAt)
    return true
  }

  /// The device is to be connected with the gateway, after its document.
  /// - Returns: false: the document is not published.
  mutating func link(at now: Moment) -> Bool {
    guard hash != nil else { return false }
    time = now
    return true
  }

  /// The document removes what the next one has other entities for.
  mutating func replace(by document: DiscoveryDocument) {
    // What exists is removed again when it is gone again.
    removed = removed.subtracting(document.completed.components).union(document.replaced)
  }

  /// What no longer exists is announced once more, to be removed by later documents.
  mutating func reannounce() { removed = [] }

  /// The next one is published even if it is the same, and removes again what no longer exists.
  mutating func expire() {
    isDue = true
    removed = []
  }

  /// The broker may take the document later.
  mutating func refused() { isRefused = true }

  /// The document is cleared: Home Assistant removes the entities now, and the next document comes after a pause.
  mutating func clear(at now: Moment) { self = Self(time: now) }

  /// Another gateway has announced the device.
  ///
  /// The owner announces it again, as the other one may not have known yet who owns it. Where it cannot learn that, as
  /// `info` does not pass between the two, this happens once for each document, unless the gateway's id is the first of the
  /// two by the alphabet: its document stays. One whose `info` has arrived learns it, and may announce the device more than
  /// once until then.
  /// - Parameter sendsInfo: whether an `info` of the device has come from that gateway.
  mutating func received(from other: GatewayID, sendsInfo: Bool, _ here: Here) -> [Action] {
    guard here.owner == .this else {
      isDue = true
      return [.forget]
    }
    guard here.isOnline else {
      isDueOnline = true
      return []
    }
    if repeatedAt != here.notices { (repeats, repeatedAt) = (0, here.notices) }
    let isRepeated = repeats >= (sendsInfo ? 3 : 1)
    if isRepeated, other.description < here.gateway.description {
      yieldedAt = here.notices
      return [.report]
    }
    (isDue, repeats) = (true, repeats + 1)
    return (isRepeated ? [.report] : []) + [.announce]
  }
}
