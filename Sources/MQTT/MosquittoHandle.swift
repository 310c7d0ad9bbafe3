import CMosquitto
import Glibc

/// One `struct mosquitto`: one attempt to connect and the connection that comes of it. Freed with this object,
/// which closes the socket.
///
/// Nothing of libmosquitto's own threads, queue and reconnecting is used. What arrives during a call is kept
/// and handed over by ``takeEvents()`` when the call has returned, so that libmosquitto is never entered from
/// inside itself.
final class MosquittoHandle: @unchecked Sendable {
  // @unchecked: it has one user at a time. The thread that dials makes it and gives it away when it is done;
  // from then on the loop's thread alone touches it.

  /// What has arrived during the last call.
  struct Events {
    var connack: Connack?
    /// PUBACKs: packet identifier and reason code.
    var acknowledgements: [(packet: Int32, reason: Int32)] = []
    /// SUBACKs: packet identifier and the first reason code.
    var subscriptions: [(packet: Int32, reason: Int32)] = []
    var messages: [MQTTReceived] = []
    /// Messages that were too large or had an impossible topic.
    var ignored = 0
    /// Why the broker said DISCONNECT.
    var disconnectReason: Int32?

    var isEmpty: Bool {
      acknowledgements.isEmpty && messages.isEmpty && subscriptions.isEmpty && connack == nil && ignored == 0
        && disconnectReason == nil
    }
  }

  struct Connack {
    var reason: Int32
    var connection: MQTTConnection
  }

  private let raw: OpaquePointer
  private let maximumIncoming: Int
  private var events = Events()
  /// What libmosquitto logs as an error while a connection comes about: the only place where it says what is
  /// wrong with TLS.
  private var complaints: [String] = []
  /// `on_publish` means a PUBACK only when it comes while packets are read; else it says that a QoS 0 packet
  /// has been written.
  private var isReading = false
  private var isAccepted = false
  private var usesTLS = false

  /// - Parameter clientID: empty, to be given one by the broker.
  init(clientID: String, maximumIncoming: UInt32) throws(MQTTError) {
    _ = Self.library
    guard let raw = clientID.isEmpty ? mosquitto_new(nil, true, nil) : mosquitto_new(clientID, true, nil)
    else {
      throw .invalidOption("the client id contains characters that are not allowed")
    }
    self.raw = raw
    self.maximumIncoming = Int(maximumIncoming)
    // Unretained: libmosquitto calls back only inside calls made by a method of this object, which lives as
    // long.
    mosquitto_user_data_set(raw, Unmanaged.passUnretained(self).toOpaque())
    setCallbacks()
  }

  deinit { mosquitto_destroy(raw) }

  /// Once in a process, and never undone: other clients may be alive.
  private static let library: Void = {
    mosquitto_lib_init()
    // 2.0.11 does so itself, later releases do not: TLS writes without MSG_NOSIGNAL.
    signal(SIGPIPE, SIG_IGN)
  }()

  // MARK: Setting up

  func set(_ option: mosq_opt_t, _ value: Int32) throws(MQTTError) {
    try check(mosquitto_int_option(raw, option, value), "option \(option.rawValue)")
  }

  func setCredentials(username: String?, password: String?) throws(MQTTError) {
    try check(
      withOptionalCString(username) { user in
        withOptionalCString(password) { password in mosquitto_username_pw_set(raw, user, password) }
      }, "the user name or password")
  }

  func setWill(_ will: MQTTMessage, version: MQTTOptions.ProtocolVersion) throws(MQTTError) {
    var properties: OpaquePointer?
    if version == .v5 {
      properties = Properties.of(
        responseTopic: will.responseTopic, correlationData: will.correlationData)
    }
    let code = will.payload.withUnsafeBytes { bytes in
      mosquitto_will_set_v5(
        raw, will.topic.string, Int32(clamping: bytes.count), bytes.baseAddress, Int32(will.qos.rawValue),
        will.retain, properties)
    }
    // On success the properties are libmosquitto's.
    if code != MOSQ_ERR_SUCCESS.code { mosquitto_property_free_all(&properties) }
    try check(code, "the will")
  }

  func setTLS(_ tls: MQTTOptions.TLS) throws(MQTTError) {
    usesTLS = true
    let code = withOptionalCString(tls.caFile) { ca in
      withOptionalCString(tls.certFile) { certificate in
        withOptionalCString(tls.keyFile) { key in
          // A key with a passphrase is refused rather than asked for on a terminal.
          mosquitto_tls_set(raw, ca, ca == nil ? "/etc/ssl/certs" : nil, certificate, key) { _, _, _, _ in 0 }
        }
      }
    }
    try check(code, "the TLS files")
  }

  private func check(_ code: Int32, _ what: String) throws(MQTTError) {
    if code != 0 { throw .invalidOption("\(what): \(String(cString: mosquitto_strerror(code)))") }
  }

  /// Looks `host` up, which may block, and begins to connect. `bindAddress` confines it to an address family.
  func connect(
    host: String, port: UInt16, keepAlive: Int32, bindAddress: String?, version: MQTTOptions.ProtocolVersion
  ) throws(MQTTError) {
    if version == .v5 {
      // The asynchronous connect takes no properties. The other one stores those it is given before it looks
      // at the host, and refuses that there is none.
      var properties: OpaquePointer?
      mosquitto_property_add_int32(
        &properties, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), UInt32(maximumIncoming))
      mosquitto_connect_bind_v5(raw, nil, Int32(port), keepAlive, nil, properties)
      mosquitto_property_free_all(&properties)
    }
    let code = withOptionalCString(bindAddress) { address in
      mosquitto_connect_bind_async(raw, host, Int32(port), keepAlive, address)
    }
    let reason = errno
    switch code {
    case MOSQ_ERR_SUCCESS.code: return
    case MOSQ_ERR_ERRNO.code where ![EPROTO, ECONNRESET, EPIPE].contains(reason):
      // Those would mean that there was a connection: the other end was quick.
      throw .unreachable(reason: text(ofErrno: reason), errno: reason)
    case MOSQ_ERR_EAI.code: throw .lookUpFailed(host: host, reason: String(cString: gai_strerror(reason)))
    default: throw error(code, errno: reason)
    }
  }

  // MARK: The connection

  /// -1 when libmosquitto has closed it.
  var socket: Int32 { mosquitto_socket(raw) }

  /// Whether packets wait for the socket to take more. In the course of a TLS handshake it says nothing.
  var wantsWrite: Bool { mosquitto_want_write(raw) }

  /// The error of the socket's connect, or 0.
  func takeSocketError() -> Int32 {
    var error: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno
  }

  /// What has arrived on a connection without TLS, left to be read; empty at its end.
  func peek() -> [UInt8] {
    let fd = socket
    return [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
      count = max(0, recv(fd, buffer.baseAddress, buffer.count, Int32(MSG_PEEK)))
    }
  }

  func read() throws(MQTTError) {
    isReading = true
    let code = mosquitto_loop_read(raw, 1)
    let reason = errno
    isReading = false
    if code != 0 { throw error(code, errno: reason) }
  }

  func write() throws(MQTTError) {
    let code = mosquitto_loop_write(raw, 1)
    if code != 0 { throw error(code, errno: errno) }
  }

  /// To be called now and then: sends pings, and finds out that the broker is silent.
  func tick() throws(MQTTError) {
    let code = mosquitto_loop_misc(raw)
    if code != 0 { throw error(code, errno: errno) }
  }

  /// Sends `packet`; returns its packet identifier, or nil when libmosquitto refuses the message itself.
  func publish(_ packet: Outbox.Packet) throws(MQTTError) -> Int32? {
    var identifier: Int32 = 0
    var properties: OpaquePointer?
    if packet.responseTopic != nil || packet.correlationData != nil {
      properties = Properties.of(
        responseTopic: packet.responseTopic, correlationData: packet.correlationData)
    }
    // A string given to C directly would be copied first.
    let code = packet.topic.string.withCString { topic in
      packet.payload.withUnsafeBytes { bytes in
        mosquitto_publish_v5(
          raw, &identifier, topic, Int32(clamping: bytes.count), bytes.baseAddress,
          Int32(packet.qos.rawValue), packet.retain, properties)
      }
    }
    let reason = errno
    if properties != nil { mosquitto_property_free_all(&properties) }
    switch code {
    case MOSQ_ERR_SUCCESS.code:
      return identifier
    case MOSQ_ERR_INVAL.code, MOSQ_ERR_MALFORMED_UTF8.code, MOSQ_ERR_PAYLOAD_SIZE.code,
      MOSQ_ERR_OVERSIZE_PACKET.code, MOSQ_ERR_QOS_NOT_SUPPORTED.code, MOSQ_ERR_DUPLICATE_PROPERTY.code:
      return nil
    case _:
      throw error(code, errno: reason)
    }
  }

  /// Returns the packet identifier.
  func subscribe(
    _ filter: TopicFilter, qos: QoS, _ options: SubscribeOptions
  ) throws(MQTTError) -> Int32 {
    var identifier: Int32 = 0
    let code = mosquitto_subscribe_v5(
      raw, &identifier, filter.string, Int32(qos.rawValue), options.rawValue, nil)
    if code != 0 { throw error(code, errno: errno) }
    return identifier
  }

  func unsubscribe(_ filter: TopicFilter) throws(MQTTError) {
    let code = mosquitto_unsubscribe(raw, nil, filter.string)
    if code != 0 { throw error(code, errno: errno) }
  }

  /// Says good-bye; the socket is closed as soon as that is written.
  func disconnect() {
    mosquitto_disconnect(raw)
  }

  /// The broker has accepted: from here on libmosquitto's log has nothing to tell, and its lines, made for
  /// each packet, cost time.
  func accepted() {
    isAccepted = true
    mosquitto_log_callback_set(raw, nil)
    complaints = []
  }

  /// What has arrived since the last time.
  func takeEvents() -> Events {
    guard !events.isEmpty else { return Events() }
    defer { events = Events() }
    return events
  }

  // MARK: Errors

  private func error(_ code: Int32, errno: Int32) -> MQTTError {
    let complaint = MosquittoText.reason(ofComplaints: complaints)
    switch code {
    case MOSQ_ERR_TLS.code, MOSQ_ERR_TLS_HANDSHAKE.code:
      return .tls(reason: complaint ?? String(cString: mosquitto_strerror(code)))
    case _ where complaint != nil && MosquittoText.isAboutTLS(complaints):
      return .tls(reason: complaint ?? "")
    case MOSQ_ERR_PROTOCOL.code, MOSQ_ERR_MALFORMED_PACKET.code, MOSQ_ERR_MALFORMED_UTF8.code,
      MOSQ_ERR_DUPLICATE_PROPERTY.code, MOSQ_ERR_NOT_SUPPORTED.code, MOSQ_ERR_TOPIC_ALIAS_INVALID.code:
      return .protocolViolation(reason: complaint ?? String(cString: mosquitto_strerror(code)))
    case MOSQ_ERR_ERRNO.code where usesTLS && !isAccepted,
      MOSQ_ERR_CONN_LOST.code where usesTLS && !isAccepted:
      // Without a complaint of OpenSSL's; what errno says comes from closing the socket.
      return .brokenOffTLS
    case MOSQ_ERR_CONN_LOST.code, MOSQ_ERR_NO_CONN.code:
      return .connectionLost(reason: "closed by the other end")
    case MOSQ_ERR_ERRNO.code:
      return .connectionLost(reason: text(ofErrno: errno))
    case MOSQ_ERR_KEEPALIVE.code:
      return .keepAliveTimedOut
    default:
      return .library(code: code, reason: String(cString: mosquitto_strerror(code)))
    }
  }

  // MARK: Callbacks

  private func setCallbacks() {
    mosquitto_log_callback_set(raw) { _, context, level, line in
      guard level == MOSQ_LOG_ERR, let line else { return }
      MosquittoHandle.of(context).complaints.append(String(cString: line))
    }
    mosquitto_connect_v5_callback_set(raw) { _, context, reason, _, properties in
      MosquittoHandle.of(context).events.connack = Connack(
        reason: reason, connection: Properties.connection(properties))
    }
    mosquitto_disconnect_v5_callback_set(raw) { _, context, reason, _ in
      // Called for every end; only what the broker said itself has a reason code of MQTT.
      if reason >= 0x80 { MosquittoHandle.of(context).events.disconnectReason = reason }
    }
    mosquitto_publish_v5_callback_set(raw) { _, context, identifier, reason, _ in
      let handle = MosquittoHandle.of(context)
      if handle.isReading { handle.events.acknowledgements.append((identifier, reason)) }
    }
    mosquitto_subscribe_v5_callback_set(raw) { _, context, identifier, count, reasons, _ in
      guard count > 0, let reasons else { return }
      MosquittoHandle.of(context).events.subscriptions.append((identifier, reasons[0]))
    }
    mosquitto_message_v5_callback_set(raw) { _, context, message, properties in
      guard let message else { return }
      MosquittoHandle.of(context).arrived(message.pointee, properties)
    }
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> MosquittoHandle {
    // Set before any callback is.
    Unmanaged<MosquittoHandle>.fromOpaque(context!).takeUnretainedValue()
  }

  private func arrived(_ message: mosquitto_message, _ properties: OpaquePointer?) {
    let count = Int(message.payloadlen)
    guard count <= maximumIncoming, let text = message.topic,
      let topic = String(validatingCString: text).flatMap(TopicName.init)
    else {
      events.ignored += 1
      return
    }
    var received = MQTTReceived(
      topic: topic, payload: [], qos: QoS(rawValue: UInt8(clamping: message.qos)) ?? .atMostOnce,
      retain: message.retain)
    if count > 0, let bytes = message.payload {
      received.payload = Array(UnsafeRawBufferPointer(start: bytes, count: count))
    }
    if properties != nil { Properties.read(properties, into: &received) }
    events.messages.append(received)
  }
}

private func withOptionalCString<R>(_ string: String?, _ body: (UnsafePointer<CChar>?) -> R) -> R {
  if let string { return string.withCString(body) }
  return body(nil)
}

extension MQTTError {
  static let brokenOffTLS = MQTTError.tls(
    reason: "the other end closed the connection: it may not use TLS, or it may require a client certificate")
}

extension mosq_err_t {
  var code: Int32 { Int32(rawValue) }
}
