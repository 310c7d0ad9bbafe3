import CMosquitto
import Glibc
import JSON

/// Conversion of MQTT 5 properties to and from libmosquitto's lists.
enum Properties {
  /// The properties of a PUBLISH, in a new list, which is to be freed with `mosquitto_property_free_all`.
  static func of(_ message: MQTTMessage) -> OpaquePointer? {
    var list: OpaquePointer?
    if let topic = message.responseTopic {
      mosquitto_property_add_string(&list, MQTT_PROP_RESPONSE_TOPIC.identifier, topic.string)
    }
    if let data = message.correlationData, let count = UInt16(exactly: data.count) {
      mosquitto_property_add_binary(&list, MQTT_PROP_CORRELATION_DATA.identifier, data, count)
    }
    return list
  }

  /// The properties of a CONNACK; omitted ones have the defaults of MQTT 5, 3.2.2.3.
  static func connection(_ list: OpaquePointer?) -> MQTTConnection {
    var connection = MQTTConnection()
    mosquitto_property_read_int16(
      list, MQTT_PROP_RECEIVE_MAXIMUM.identifier, &connection.receiveMaximum, false)
    var size: UInt32 = 0
    if mosquitto_property_read_int32(list, MQTT_PROP_MAXIMUM_PACKET_SIZE.identifier, &size, false) != nil {
      connection.maximumPacketSize = size
    }
    var seconds: UInt16 = 0
    if mosquitto_property_read_int16(list, MQTT_PROP_SERVER_KEEP_ALIVE.identifier, &seconds, false) != nil {
      connection.serverKeepAlive = .seconds(seconds)
    }
    return connection
  }

  /// What a broker says of a refusal, to follow the name of its reason code: the Reason String, and the Server
  /// Reference, which names another broker. Of each at most 100 printable characters.
  static func words(_ list: OpaquePointer?) -> String {
    [MQTT_PROP_REASON_STRING, MQTT_PROP_SERVER_REFERENCE].map { property in
      var text: UnsafeMutablePointer<CChar>?
      guard mosquitto_property_read_string(list, property.identifier, &text, false) != nil, let text else {
        return ""
      }
      defer { free(text) }
      let printable = String(cString: text).unicodeScalars.filter { !$0.isInvisible }
      return printable.isEmpty ? "" : ": \(String(String.UnicodeScalarView(printable.prefix(100))))"
    }.joined()
  }

  /// The response topic and correlation data of a PUBLISH. An invalid response topic is ignored.
  static func read(_ list: OpaquePointer?, into message: inout MQTTReceived) {
    var text: UnsafeMutablePointer<CChar>?
    if mosquitto_property_read_string(list, MQTT_PROP_RESPONSE_TOPIC.identifier, &text, false) != nil {
      message.responseTopic = text.flatMap { String(validatingCString: $0) }.flatMap(TopicName.init)
      free(text)
    }
    var bytes: UnsafeMutableRawPointer?
    var count: UInt16 = 0
    if mosquitto_property_read_binary(
      list, MQTT_PROP_CORRELATION_DATA.identifier, &bytes, &count, false) != nil
    {
      message.correlationData = Array(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
      free(bytes)
    }
  }
}

extension mqtt5_property {
  fileprivate var identifier: Int32 { Int32(rawValue) }
}
