import EventLoop

/// How often the list of devices is published: it changes with each of them, and with a thousand it is 270 kB.
struct DeviceReportPacing {
  /// A list is followed by another one when it would have been sent at this rate.
  static let bytesPerSecond = 32 * 1024

  private var last: [UInt8] = []
  private var next: Moment?

  /// How long to wait with the next list.
  func delay(at now: Moment) -> Duration { next.map { max(.zero, now.duration(to: $0)) } ?? .zero }

  /// Whether `list` is another one than the last: then it is published now.
  mutating func mayPublish(_ list: [UInt8], at now: Moment) -> Bool {
    guard list != last else { return false }
    last = list
    next = now + .seconds(Double(list.count) / Double(Self.bytesPerSecond))
    return true
  }
}
