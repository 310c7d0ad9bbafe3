import EventLoop

/// A peripheral's radio: which adapters receive it, the one that it is connected to, and what it sends.
struct Radio: Sendable {
  /// Mean signal strength in dBm, by adapter; nil: out of its range.
  var strengths: [Int?]
  /// Since when the radio has been out of range of all adapters; nil if it is in range.
  var goneSince: Moment?
  /// Advertises while it is not connected.
  var advertises = true
  /// The number of the adapter that it is connected to.
  var linked: Int?
  /// Keeps the link, but sends no notifications.
  var isSilent = false
  /// The number of notifications sent.
  private(set) var sent = 0

  init(strengths: [Int?]) { self.strengths = strengths }

  var inRange: Bool { goneSince == nil }

  /// How strongly an adapter receives the advertisements; nil: the adapter does not, and cannot connect.
  func strength(at adapter: Int) -> Int? {
    inRange && advertises && linked == nil ? strengths[adapter] : nil
  }

  /// Sends a notification; false: it sends none at present.
  mutating func send() -> Bool {
    guard !isSilent, inRange else { return false }
    sent += 1
    return true
  }
}
