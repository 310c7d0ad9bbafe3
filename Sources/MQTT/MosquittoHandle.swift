import CMosquitto
import Glibc

/// Owns a `struct mosquitto`: one attempt to connect and the resulting connection. Releasing it closes the socket.
///
/// libmosquitto's threads, queue and reconnects are not used. Events during a call are stored, and returned by
/// ``takeEvents()`` after the call, so that libmosquitto is not re-entered.
final class MosquittoHandle: @unchecked Sendable {
  // @unchecked: one thread at a time. The thread that connects creates it and hands it over to the loop's thread.

  /// The events of the last calls.
  struct Events {
    var connack: (reason: Int32, words: String, connection: MQTTConnection)?
    /// PUBACKs: packet identifier and reason code.
    var acknowledgements: [(packet: Int32, reason: Int32)] = []
    /// SUBACKs: packet identifier and a reason code for each filter.
    var subscriptions: [(packet: Int32, reasons: [Int32])] = []
    var messages: [MQTTReceived] = []
    /// The reason code of a DISCONNECT from the broker, whose properties libmosquitto drops.
    var disconnectReason: Int32?
  }

  private let raw: OpaquePointer
  private let maximumIncoming: Int
  private let keptBytes: @Sendable (TopicName) -> Int
  private var events = Events()
  /// Errors logged by libmosquitto until the broker accepts: the only source of the reason of a TLS error.
  private var errorLines: [String] = []
  /// Distinguishes PUBACKs from the completion of QoS 0 writes, for both of which `on_publish` is called.
  private var isReading = false
  /// The connection uses TLS, and the broker has not accepted it yet.
  private var isTLSHandshake = false

  /// While connecting, another descriptor of the socket, which libmosquitto closes if TLS fails at once; -1: not yet.
  private var copy: Int32?

  /// - Parameter clientID: empty: assigned by the broker.
  init(
    clientID: String, maximumIncoming: UInt32, keptBytes: @escaping @Sendable (TopicName) -> Int
  ) throws(MQTTError) {
    _ = Self.library
    guard let raw = mosquitto_new(clientID.isEmpty ? nil : clientID, true, nil) else {
      throw .invalidOption("the client id contains characters that are not allowed")
    }
    self.raw = raw
    self.maximumIncoming = Int(maximumIncoming)
    self.keptBytes = keptBytes
    // Unretained: libmosquitto only calls back during calls by this object.
    mosquitto_user_data_set(raw, Unmanaged.passUnretained(self).toOpaque())
    setCallbacks()
  }

  deinit { mosquitto_destroy(raw) }

  /// Initialised once per process, and never undone: other clients may exist.
  private static let library: Void = {
    mosquitto_lib_init()
    // 2.0.11 does so itself, later releases do not: TLS writes without MSG_NOSIGNAL.
    signal(SIGPIPE, SIG_IGN)
  }()

  // MARK: Configuration

  func set(_ option: mosq_opt_t, _ value: Int32) throws(MQTTError) {
    try check(mosquitto_int_option(raw, option, value), "option \(option.rawValue)")
  }

  func setCredentials(username: String?, password: String?) throws(MQTTError) {
    try check(mosquitto_username_pw_set(raw, username, password), "the user name or password")
  }

  func setWill(_ will: MQTTMessage) throws(MQTTError) {
    let code = will.payload.withUnsafeBytes { bytes in
      mosquitto_will_set(
        raw, will.topic.string, Int32(clamping: bytes.count), bytes.baseAddress, Int32(will.qos.rawValue),
        will.retain)
    }
    try check(code, "the will")
  }

  func setTLS(_ tls: MQTTOptions.TLS) throws(MQTTError) {
    isTLSHandshake = true
    let folder: String? = tls.caFile == nil ? "/etc/ssl/certs" : nil
    // Reject a key with a passphrase, rather than ask for it on a terminal.
    let code = mosquitto_tls_set(raw, tls.caFile, folder, tls.certFile, tls.keyFile) { _, _, _, _ in 0 }
    try check(code, "the TLS files")
    if let alpn = tls.alpn {
      try check(mosquitto_string_option(raw, MOSQ_OPT_TLS_ALPN, alpn), "ALPN")
    }
  }

  private func check(_ code: Int32, _ what: String) throws(MQTTError) {
    if code != 0 { throw .invalidOption("\(what): \(MosquittoText.text(of: code))") }
  }

  /// Resolves `host`, which may block, and begins to connect. `bindAddress` selects an address family.
  func connect(
    host: String, port: UInt16, keepAlive: Int32, bindAddress: String?, version: MQTTOptions.ProtocolVersion
  ) throws(MQTTError) {
    if version == .v5 {
      // The asynchronous connect has no properties argument. The synchronous one stores its properties, and then fails
      // because there is no host.
      var properties: OpaquePointer?
      mosquitto_property_add_int32(
        &properties, Int32(MQTT_PROP_MAXIMUM_PACKET_SIZE.rawValue), UInt32(maximumIncoming))
      mosquitto_connect_bind_v5(raw, nil, Int32(port), keepAlive, nil, properties)
      mosquitto_property_free_all(&properties)
    }
    copy = -1
    let code = mosquitto_connect_bind_async(raw, host, Int32(port), keepAlive, bindAddress)
    let reason = errno
    defer {
      if let copy, copy >= 0 { close(copy) }
      copy = nil
    }
    switch code {
    case MOSQ_ERR_SUCCESS.code: return
    case MOSQ_ERR_ERRNO.code where ![EPROTO, ECONNRESET, EPIPE].contains(reason):
      // ECONNRESET and EPIPE imply that the connection had been established already; EPROTO is any error of OpenSSL.
      throw .unreachable(reason: text(ofErrno: reason), errno: reason)
    case MOSQ_ERR_EAI.code: throw .lookUpFailed(host: host, reason: String(cString: gai_strerror(reason)))
    case _ where reason == EPROTO && errorLines.isEmpty && !Self.wasConnected(copy ?? -1):
      // 2.0.12 and later begin TLS here, and a refusal that has come already is an error of OpenSSL, which says nothing of it.
      throw .unreachable(reason: text(ofErrno: ECONNREFUSED), errno: ECONNREFUSED)
    default: throw error(code, errno: reason)
    }
  }

  // MARK: The connection

  /// -1 if libmosquitto has closed it.
  var socket: Int32 { mosquitto_socket(raw) }

  /// Whether packets wait until the socket is writable. Not meaningful during a TLS handshake.
  var wantsWrite: Bool { mosquitto_want_write(raw) }

  /// The error of the socket's connect, or 0.
  func takeSocketError() -> Int32 {
    var error: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 else { return errno }
    if error != 0 { return error }
    // 2.0.11 begins TLS before there is a connection: its write takes the error of a refusal that has come already.
    return Self.wasConnected(socket) ? 0 : ECONNREFUSED
  }

  /// Whether the socket has a connection, or had one: a round-trip time is known.
  private static func wasConnected(_ socket: Int32) -> Bool {
    var info = tcp_info()
    var size = socklen_t(MemoryLayout<tcp_info>.size)
    guard getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0 else { return false }
    return info.tcpi_state != TCP_CLOSE || info.tcpi_rtt > 0
  }

  /// The first bytes received on a connection without TLS, without reading them; empty at its end.
  func peek(_ most: Int) -> [UInt8] {
    let fd = socket
    return [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      count = max(0, recv(fd, buffer.baseAddress, buffer.count, Int32(MSG_PEEK)))
    }
  }

  func read() throws(MQTTError) {
    isReading = true
    defer { isReading = false }
    try check(mosquitto_loop_read(raw, 1))
  }

  func write() throws(MQTTError) { try check(mosquitto_loop_write(raw, 1)) }

  /// Must be called periodically: sends pings, and detects that the broker does not answer.
  func tick() throws(MQTTError) { try check(mosquitto_loop_misc(raw)) }

  /// Sends `message`; returns its packet identifier, or nil if libmosquitto rejects it.
  func publish(_ message: MQTTMessage) throws(MQTTError) -> Int32? {
    var identifier: Int32 = 0
    var properties = Properties.of(message)
    // A string passed directly to C would be copied first.
    let code = message.topic.string.withCString { topic in
      message.payload.withUnsafeBytes { bytes in
        mosquitto_publish_v5(
          raw, &identifier, topic, Int32(clamping: bytes.count), bytes.baseAddress,
          Int32(message.qos.rawValue), message.retain, properties)
      }
    }
    let reason = errno
    mosquitto_property_free_all(&properties)
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
  func subscribe(_ filters: [TopicFilter], _ options: SubscribeOptions) throws(MQTTError) -> Int32 {
    var identifier: Int32 = 0
    let qos: QoS = options.contains(.atMostOnce) ? .atMostOnce : .atLeastOnce
    let code = withCStrings(filters) { strings in
      mosquitto_subscribe_multiple(
        raw, &identifier, Int32(filters.count), strings, Int32(qos.rawValue),
        options.subtracting(.atMostOnce).rawValue, nil)
    }
    try check(code)
    return identifier
  }

  func unsubscribe(_ filters: [TopicFilter]) throws(MQTTError) {
    try check(
      withCStrings(filters) { mosquitto_unsubscribe_multiple(raw, nil, Int32(filters.count), $0, nil) })
  }

  /// Unsubscribes from a filter that nobody uses, which every broker answers: libmosquitto has no call for a PINGREQ.
  func ping() throws(MQTTError) { try check(mosquitto_unsubscribe(raw, nil, "microbit-gateway/ping")) }

  /// Sends DISCONNECT; the socket is closed once that is written.
  func disconnect() { mosquitto_disconnect(raw) }

  /// The broker has accepted: stops logging, as libmosquitto formats lines for each packet.
  func accepted() {
    isTLSHandshake = false
    mosquitto_log_callback_set(raw, nil)
    errorLines = []
  }

  func takeEvents() -> Events {
    defer { events = Events() }
    return events
  }

  // MARK: Errors

  /// To be called at once, as it reads `errno`.
  private func check(_ code: Int32) throws(MQTTError) {
    if code != 0 { throw error(code, errno: errno) }
  }

  private func error(_ code: Int32, errno: Int32) -> MQTTError {
    MosquittoText.error(code, errno: errno, lines: errorLines, isTLSHandshake: isTLSHandshake)
  }

  /// What is wrong with the broker's certificate, of which libmosquitto only says that the verification failed.
  private var certificateFault: String? {
    guard let ssl = mosquitto_ssl_get(raw) else { return nil }
    let result = SSL_get_verify_result(OpaquePointer(ssl))
    guard result != X509_V_OK, result != X509_V_ERR_UNSPECIFIED else { return nil }
    return String(cString: X509_verify_cert_error_string(result))
  }

  // MARK: Callbacks

  private func setCallbacks() {
    mosquitto_log_callback_set(raw) { raw, context, level, line in
      let handle = MosquittoHandle.of(context)
      // The first line comes before CONNECT is sent.
      if handle.copy == -1 { handle.copy = fcntl(mosquitto_socket(raw), F_DUPFD_CLOEXEC, 0) }
      guard level == MOSQ_LOG_ERR, let line else { return }
      handle.errorLines.append(String(cString: line))
      if let fault = handle.certificateFault { handle.errorLines.append(fault) }
    }
    mosquitto_connect_v5_callback_set(raw) { _, context, reason, _, properties in
      MosquittoHandle.of(context).events.connack =
        (reason, Properties.words(properties), Properties.connection(properties))
    }
    mosquitto_disconnect_v5_callback_set(raw) { _, context, reason, _ in
      // Called for every end of the connection; only the broker's reason codes are 0x80 or above.
      if reason >= 0x80 { MosquittoHandle.of(context).events.disconnectReason = reason }
    }
    mosquitto_publish_v5_callback_set(raw) { _, context, identifier, reason, _ in
      let handle = MosquittoHandle.of(context)
      if handle.isReading { handle.events.acknowledgements.append((identifier, reason)) }
    }
    mosquitto_subscribe_v5_callback_set(raw) { _, context, identifier, count, reasons, _ in
      guard count > 0, let reasons else { return }
      let codes = Array(UnsafeBufferPointer(start: reasons, count: Int(count)))
      MosquittoHandle.of(context).events.subscriptions.append((identifier, codes))
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

  /// Drops a message that is too large or has an invalid topic.
  private func arrived(_ message: mosquitto_message, _ properties: OpaquePointer?) {
    let count = Int(message.payloadlen)
    guard count <= maximumIncoming, let text = message.topic,
      let topic = String(validatingCString: text).flatMap(TopicName.init)
    else { return }
    var received = MQTTReceived(
      topic: topic, payload: [], qos: QoS(rawValue: UInt8(clamping: message.qos)) ?? .atMostOnce,
      retain: message.retain)
    if count > 0, let bytes = message.payload {
      received.payload = Array(UnsafeRawBufferPointer(start: bytes, count: min(count, keptBytes(topic))))
    }
    if properties != nil { Properties.read(properties, into: &received) }
    events.messages.append(received)
  }
}

private func withCStrings<R>(
  _ filters: [TopicFilter], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> R
) -> R {
  let copies = filters.map { strdup($0.string) }
  defer { for copy in copies { free(copy) } }
  return body(copies)
}
