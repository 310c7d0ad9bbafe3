import EventLoop

/// How often a device that is only heard sends, and how long it is online after that: nothing tells when it is switched off.
///
/// What counts are the silences between what is heard: a device may send a burst every ten minutes.
struct Rhythm: Sendable {
  private static let most = 8
  private static let longest = Duration.seconds(3600)
  /// The shortest limit. While it scans, bluetoothd reports each peripheral about every 10 s; a connect pauses that for seconds.
  static let least = Duration.seconds(60)
  /// The limit of a device of which nothing is known: many sensors sleep for ten minutes.
  static let initial = Duration.seconds(900)

  /// The time after which another silence is noted.
  private let span: Duration
  /// The limit while too few silences are known.
  private let before: Duration
  /// The begin of this span.
  private var start: Moment?
  private var last: Moment?
  /// The longest silence of this span.
  private var silence = Duration.zero
  /// The longest silences of the last spans.
  private var silences: [Duration] = []

  /// - Parameter learned: see ``learned``; in an earlier run.
  init(span: Duration, learned: Int? = nil) {
    self.span = span
    before = learned.map { .seconds($0) } ?? Self.initial
  }

  mutating func heard(at now: Moment) {
    defer { last = now }
    guard let start, let last else { return start = now }
    silence = max(silence, min(last.duration(to: now), Self.longest))
    guard start + span <= now else { return }
    silences.append(silence)
    if silences.count > Self.most { silences.removeFirst() }
    (self.start, silence) = (now, .zero)
  }

  /// What hears the device is away: the silence until it is heard again tells nothing of it.
  mutating func interrupt() { last = nil }

  /// Whether the silences tell how often it sends.
  private var isKnown: Bool { silences.count == Self.most }

  /// Three times the longest of the last silences.
  var limit: Duration { max(isKnown ? Self.least : before, (silences.max() ?? .zero) * 3) }

  /// The limit in s, in whole minutes, so that it seldom changes; nil: not known yet.
  var learned: Int? { isKnown ? Int((limit.components.seconds + 59) / 60 * 60) : nil }
}
