import EventLoop
import Radio

/// Which packets are new: several receivers hear the same one, and the first that reports it counts.
struct RadioHistory: Sendable {
  /// How long a packet may take through a receiver. Packets without a time are told apart by their receivers only: the same
  /// value from the same one is another packet.
  private static let window = Duration.seconds(2)
  private static let capacity = 1024

  /// The new packets of the last seconds, and who has reported them.
  private var seen: [(packet: RadioPacket, port: String, moment: Moment)] = []

  mutating func addIfNew(_ packet: RadioPacket, from port: String, at now: Moment) -> Bool {
    seen.removeFirst(seen.prefix { $0.moment + Self.window < now }.count)
    let before = seen.last { $0.packet == packet }
    if let before, packet.time != nil || before.port != port { return false }
    if seen.count == Self.capacity { seen.removeFirst() }
    seen.append((packet, port, now))
    return true
  }
}
