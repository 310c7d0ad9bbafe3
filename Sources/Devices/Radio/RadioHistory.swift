import EventLoop
import GATT
import Radio

/// Which packets are new: several receivers hear the same one, and the first that reports it counts.
struct RadioHistory: Sendable {
  private struct Key: Hashable {
    let sender: RadioSender
    let time: UInt32?
    let message: [UInt8]
  }

  private struct Seen {
    let port: String
    let moment: Moment
  }

  /// How long a packet may take through a receiver. Packets without a time are told apart by their receivers only: the same
  /// value from the same one is another packet.
  private static let window = Duration.seconds(2)
  private static let capacity = 1024

  private var seen: [Key: Seen] = [:]
  /// The keys in the order in which they came.
  private var order: [Key] = []

  mutating func isNew(_ packet: RadioPacket, from port: String, at now: Moment) -> Bool {
    guard let sender = packet.sender else { return true }
    let key = Key(sender: sender, time: packet.time, message: packet.message)
    let before = seen[key].flatMap { now <= $0.moment + Self.window ? $0 : nil }
    if let before, packet.time != nil || before.port != port { return false }
    if seen.updateValue(Seen(port: port, moment: now), forKey: key) == nil { order.append(key) }
    if order.count > Self.capacity {
      for key in order.prefix(Self.capacity / 2) { seen[key] = nil }
      order.removeFirst(Self.capacity / 2)
    }
    return true
  }
}
