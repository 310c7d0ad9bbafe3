import MQTT

/// Commands and requests of one connection that came before it was known whose they are, in order.
struct EarlyMessages {
  /// In bytes, of topics and payloads, and something for each. Retained commands for a thousand devices are a fifth.
  private static let most = 1 << 20
  private static let each = 100

  private var messages: [MQTTReceived] = []
  private var bytes = 0
  /// Those that came when there was no more room.
  private(set) var lost = 0

  mutating func append(_ message: MQTTReceived) {
    let size = Self.each + message.topic.string.utf8.count + message.payload.count
    guard bytes + size <= Self.most else {
      lost += 1
      return
    }
    bytes += size
    messages.append(message)
  }

  /// All of them; from now on there are none.
  mutating func takeAll() -> [MQTTReceived] {
    defer { self = EarlyMessages() }
    return messages
  }
}
