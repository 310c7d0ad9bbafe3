import CMosquitto
import Glibc
import Synchronization

/// The blocking part of an attempt to connect: reads the password and the certificate files, and resolves the host name.
struct Dialling: Sendable {
  private(set) var options: MQTTOptions
  let broker: MQTTBroker
  /// libmosquitto only tries the first address completely, and the broker may only listen on another one.
  var choice = AddressChoice()

  init(_ options: MQTTOptions, _ broker: MQTTBroker) {
    self.options = options
    self.broker = broker
  }

  /// Blocks. The returned handle has a socket that is connecting, to the address of the returned choice.
  func callAsFunction() -> (result: Result<MosquittoHandle, MQTTError>, choice: AddressChoice) {
    var attempt = self
    do throws(MQTTError) {
      if let readPassword = options.readPassword { attempt.options.password = try readPassword() }
      return (.success(try attempt.dial()), attempt.choice)
    } catch {
      return (.failure(error), attempt.choice)
    }
  }

  private mutating func dial() throws(MQTTError) -> MosquittoHandle {
    try checkFiles()
    let handle = try MosquittoHandle(
      clientID: options.clientID, maximumIncoming: options.maximumIncomingPacket,
      keptBytes: options.keptBytes)
    try configure(handle)
    let addresses = try options.lookUp(broker.host)
    if options.tls == nil {
      try connect(handle, to: choice.pick(from: addresses)?.text ?? broker.host)
    } else {
      // The certificate is verified for the name, of whose addresses only the family can be chosen.
      var families: [HostAddress] = []
      for address in addresses where !families.contains(where: { $0.family == address.family }) {
        families.append(
          HostAddress(family: address.family, text: address.family == AF_INET ? "0.0.0.0" : "::"))
      }
      let any = choice.pick(from: families)?.text
      // libmosquitto initialises TLS globals on first use, without a lock.
      let attempt = self
      try Self.tls.withLock { (_) throws(MQTTError) in
        try attempt.connect(handle, to: attempt.broker.host, from: families.count == 1 ? nil : any)
      }
    }
    return handle
  }

  private static let tls = Mutex(())

  private func connect(
    _ handle: MosquittoHandle, to host: String, from bindAddress: String? = nil
  ) throws(MQTTError) {
    let keepAlive = Int32(clamping: max(5, min(65535, options.keepAlive.components.seconds)))
    try handle.connect(
      host: host, port: broker.port, keepAlive: keepAlive, bindAddress: bindAddress,
      version: options.protocolVersion)
  }

  private func configure(_ handle: MosquittoHandle) throws(MQTTError) {
    let version = options.protocolVersion == .v5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311
    try handle.set(MOSQ_OPT_PROTOCOL_VERSION, version)
    // Otherwise small packets wait for the other end's delayed ACK: 44 ms instead of 0.6 ms.
    try handle.set(MOSQ_OPT_TCP_NODELAY, 1)
    // The outbox limits the messages in flight; libmosquitto must not queue any.
    try handle.set(MOSQ_OPT_SEND_MAXIMUM, 65535)
    if options.username != nil || options.password != nil {
      try handle.setCredentials(username: options.username, password: options.password)
    }
    if let will = options.will { try handle.setWill(will) }
    if let tls = options.tls { try handle.setTLS(tls) }
  }

  private func checkFiles() throws(MQTTError) {
    guard let tls = options.tls else { return }
    for case let path? in [tls.caFile, tls.certFile, tls.keyFile] {
      let fd = open(path, O_RDONLY | O_CLOEXEC)
      guard fd >= 0 else { throw .file(path: path, reason: text(ofErrno: errno)) }
      defer { close(fd) }
      var byte: UInt8 = 0
      let count = read(fd, &byte, 1)
      if count < 0 { throw .file(path: path, reason: text(ofErrno: errno)) }
      if count == 0 { throw .file(path: path, reason: "it is empty") }
    }
  }
}
