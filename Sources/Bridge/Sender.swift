import Devices
import GATT
import JSON
import MQTT

/// How the sender of a command or a request recognises the reply, and where it wants a copy of it.
struct Sender: Sendable, Equatable {
  var transaction: String?
  /// The sender's own (MQTT 5, 4.10).
  private(set) var responseTopic: TopicName?
  private(set) var correlationData: [UInt8]?

  /// The most levels of a response topic: mosquitto ends the connection of a client that publishes to one of more than 200,
  /// EMQX by default of more than 128.
  private static let mostLevels = 100
  /// The most bytes of a response topic and of correlation data: they are stored with a command that waits.
  private static let longest = 1024
  /// The most bytes of a transaction.
  static let longestTransaction = 256

  init(of message: MQTTReceived, transaction: String? = nil) {
    self.transaction = transaction
    // Nobody waits any more for the reply to a retained message.
    guard !message.retain, let topic = message.responseTopic, topic.string.utf8.count <= Self.longest,
      topic.string.utf8.count(where: { $0 == UInt8(ascii: "/") }) < Self.mostLevels,
      (message.correlationData ?? []).count <= Self.longest
    else { return }
    responseTopic = topic
    correlationData = message.correlationData
  }

  /// The sender as it is stored.
  var json: JSONValue {
    [
      "transaction": transaction.map(JSONValue.string),
      "response_topic": responseTopic.map { .string($0.string) },
      "correlation_data": correlationData.map { .string(Hexadecimal.text($0)) },
    ]
  }

  init(_ json: JSONValue?) {
    transaction = json?["transaction"]?.text
    responseTopic = json?["response_topic"]?.text.flatMap { TopicName($0) }
    correlationData = json?["correlation_data"]?.text.flatMap { Hexadecimal.bytes($0) }
  }

  /// The member `transaction` of a command or a request; nil when there is none.
  static func transaction(_ object: JSONObject) throws(RequestError) -> String? {
    switch object["transaction"] {
    case nil: return nil
    case .string(let text):
      guard text.utf8.count <= longestTransaction else {
        throw RequestError(.invalid, "the transaction is longer than \(longestTransaction) bytes")
      }
      return text
    case .some(let other): throw RequestError(.invalid, "the transaction is \(other.kind), not a string")
    }
  }
}
