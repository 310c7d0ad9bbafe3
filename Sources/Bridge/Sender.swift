import Devices
import GATT
import JSON
import MQTT

/// How the sender of a command or a request recognises the reply, and where it wants a copy of it.
struct Sender: Sendable, Equatable {
  /// What the sender has given, as it is: a text, a number or a boolean.
  var transaction: JSONValue?
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

  init(of message: MQTTReceived, transaction: JSONValue? = nil) {
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
      "transaction": transaction,
      "response_topic": responseTopic.map { .string($0.string) },
      "correlation_data": correlationData.map { .string(Hexadecimal.text($0)) },
    ]
  }

  init(_ json: JSONValue?) {
    transaction = json?["transaction"]
    responseTopic = json?["response_topic"]?.text.flatMap { TopicName($0) }
    correlationData = json?["correlation_data"]?.text.flatMap { Hexadecimal.bytes($0) }
  }

  /// The member `transaction` of a command or a request; nil when there is none, or `null`.
  static func transaction(_ object: JSONObject) throws(RequestError) -> JSONValue? {
    switch object["transaction"] {
    case nil, .null: return nil
    case .string(let text) where text.utf8.count > longestTransaction:
      throw RequestError(.invalid, "the transaction is longer than \(longestTransaction) bytes")
    case .string, .integer, .number, .bool: return object["transaction"]
    case .array, .object:
      throw RequestError(.invalid, "the transaction is not a text, a number or a boolean")
    }
  }
}
