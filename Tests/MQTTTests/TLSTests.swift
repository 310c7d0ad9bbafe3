import Glibc
import TestSupport
import Testing

@testable import MQTT

/// With certificates that openssl generates for the test, if it is installed.
@Suite(.timeLimit(.minutes(5)), .enabled(if: access("/usr/bin/openssl", X_OK) == 0)) struct TLSTests {
  /// A folder with `ca`, `server` and `expired` (for 127.0.0.1 and localhost), `other-host` and `client`, all signed by `ca`, and
  /// `untrusted`, an authority that is not trusted: `.crt` and `.key` of each.
  private static func certificates() async throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    let script = """
      set -e
      cd '\(folder.path)'
      authority() {
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \\
          -keyout $1.key -out $1.crt
      }
      certificate() {
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout $1.key -out $1.csr
        printf '%s' "$2" > $1.ext
        openssl x509 -req -in $1.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days ${3:-2} -extfile $1.ext \\
          -out $1.crt
      }
      authority ca
      authority untrusted
      certificate server subjectAltName=IP:127.0.0.1,DNS:localhost
      certificate other-host subjectAltName=DNS:elsewhere.example
      certificate expired subjectAltName=IP:127.0.0.1 0
      certificate client ''
      openssl ec -in client.key -aes128 -passout pass:secret -out locked.key
      """
    let shell = try ChildProcess("/bin/sh", ["-c", script])
    let status = try await shell.exitStatus()
    guard status == 0 else { throw Failure(shell.text) }
    return folder
  }

  private func broker(
    _ folder: TemporaryFolder, certificate: String = "server", requiresClient: Bool = false
  ) async throws -> MosquittoBroker {
    try await MosquittoBroker(folder: folder) { path in
      """
      allow_anonymous true
      cafile \(path)/ca.crt
      certfile \(path)/\(certificate).crt
      keyfile \(path)/\(certificate).key
      require_certificate \(requiresClient)
      """
    }
  }

  private func client(
    _ broker: MosquittoBroker, ca: String? = "ca.crt", cert: String? = nil, key: String? = nil,
    host: String = "127.0.0.1", version: MQTTOptions.ProtocolVersion = .v5
  ) async -> TestClient {
    let path = broker.folder.path + "/"
    var options = MQTTOptions.local(broker.port, version)
    options.brokers = [MQTTBroker(host: host, port: broker.port)]
    options.tls = MQTTOptions.TLS(
      caFile: ca.map { path + $0 }, certFile: cert.map { path + $0 }, keyFile: key.map { path + $0 })
    return await TestClient(options) { $0.subscribe([filter("t")]) }
  }

  private func reason(_ client: TestClient) async throws -> String {
    let error = try await client.connectFailed()
    guard case .tls(let reason) = error else { throw Failure("\(error)") }
    return reason
  }

  @Test(arguments: [MQTTOptions.ProtocolVersion.v5, .v311])
  func connectsWithAuthorityAndClientCertificate(_ version: MQTTOptions.ProtocolVersion) async throws {
    let folder = try await Self.certificates()
    let broker = try await broker(folder, requiresClient: true)
    let client = await client(broker, cert: "client.crt", key: "client.key", version: version)
    try await client.connected()
    let large = [UInt8](repeating: 1, count: 200_000)
    for payload in [[1], large, [2]] {
      await client.publish(MQTTMessage(topic: topic("t"), payload: payload))
    }
    #expect(try await client.message().payload == [1])
    #expect(try await client.message().payload == large)
    #expect(try await client.message().payload == [2])
    await client.client.stop(deadline: patience)
    // The connection was not lost before.
    #expect(try await client.disconnected() == nil)
  }

  @Test func certificateFaultIsNamed() async throws {
    let folder = try await Self.certificates()
    let broker = try await broker(folder)
    #expect(try await reason(client(broker, ca: "untrusted.crt")).contains("certificate verify failed"))
    let unsigned = try await reason(client(broker, ca: nil))
    #expect(unsigned.hasPrefix("certificate verify failed; "), "\(unsigned)")
    let expired = try await self.broker(folder, certificate: "expired")
    let error = try await client(expired).connectFailed()
    #expect(error == .tls(reason: "certificate verify failed; certificate has expired"))
    #expect(error.hint(at: MQTTBroker(host: "a", port: 1))?.contains("clock") == true)
    let misnamed = try await self.broker(folder, certificate: "other-host")
    #expect(try await reason(client(misnamed)).contains("host name verification failed"))
  }

  @Test func missingClientCertificateIsRefusedByTheBroker() async throws {
    let folder = try await Self.certificates()
    let broker = try await broker(folder, requiresClient: true)
    let text = try await reason(client(broker))
    // The alert from the broker, or the reset that may overtake it.
    let possible = ["certificate required", "require another client certificate"]
    #expect(possible.contains { text.contains($0) }, "\(text)")
  }

  @Test func unusableFilesAreNamed() async throws {
    let folder = try await Self.certificates()
    let broker = try await broker(folder)
    let path = folder.path + "/"
    try folder.write("", to: "empty.crt")
    try folder.write("no certificate", to: "text.crt")
    #expect(
      try await client(broker, ca: "missing.crt").connectFailed()
        == .file(path: path + "missing.crt", reason: "No such file or directory"))
    #expect(
      try await client(broker, ca: "empty.crt").connectFailed()
        == .file(path: path + "empty.crt", reason: "it is empty"))
    #expect(
      try await client(broker, ca: "ca.crt", cert: "client.crt", key: "none.key").connectFailed()
        == .file(path: path + "none.key", reason: "No such file or directory"))
    #expect(try await reason(client(broker, ca: "text.crt")).contains(path + "text.crt"))
    #expect(try await reason(client(broker, cert: "client.crt", key: "text.crt")).contains(path + "text.crt"))
    #expect(
      try await reason(client(broker, cert: "client.crt", key: "locked.key")).contains(path + "locked.key"))
    #expect(
      try await reason(client(broker, cert: "client.crt", key: "server.key")).hasSuffix("key values mismatch")
    )
  }

  @Test(
    .enabled(if: access("/usr/bin/python3", X_OK) == 0, "needs Python"), arguments: [nil, "x-amzn-mqtt-ca"])
  func asksForTheProtocol(_ alpn: String?) async throws {
    let folder = try await Self.certificates()
    let script = """
      import socket, ssl
      context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
      context.load_cert_chain("\(folder.path)/server.crt", "\(folder.path)/server.key")
      context.set_alpn_protocols(["http/1.1", "x-amzn-mqtt-ca"])
      listener = socket.create_server(("127.0.0.1", 0))
      print("port", listener.getsockname()[1], flush=True)
      connection = context.wrap_socket(listener.accept()[0], server_side=True)
      print("protocol", connection.selected_alpn_protocol(), flush=True)
      """
    let server = try ChildProcess("/usr/bin/python3", ["-c", script])
    let line = try await server.line { $0.hasPrefix("port ") }
    let port = try #require(UInt16(line.dropFirst(5)))
    var options = MQTTOptions.local(port)
    options.tls = MQTTOptions.TLS(caFile: folder.path + "/ca.crt", alpn: alpn)
    let client = await TestClient(options)
    let answer = try await server.line { $0.hasPrefix("protocol ") }
    #expect(answer == "protocol \(alpn ?? "None")")
    await client.die()
  }

  @Test func brokerThatEndsIsLostAndThenUnreachable() async throws {
    let broker = try await broker(Self.certificates())
    let client = await client(broker)
    try await client.connected()
    try await broker.kill()
    let loss = try await client.disconnected()
    guard case .connectionLost? = loss else { throw Failure("\(String(describing: loss))") }
    #expect(try await client.connectFailed() == .unreachable(reason: "Connection refused", errno: 111))
    #expect(client.lines.elements.allSatisfy { $0.level < .error })
    try await broker.start()
    try await client.connected()
  }

  /// `localhost` is ::1 first on many machines, and the broker listens on 127.0.0.1 alone.
  @Test func theOtherAddressFamilyIsTried() async throws {
    let broker = try await broker(Self.certificates())
    try await client(broker, host: "localhost").connected()
  }

  @Test func brokerWithoutTLSIsAConfigurationError() async throws {
    let broker = try await MosquittoBroker()
    let folder = try await Self.certificates()
    var options = MQTTOptions.local(broker.port)
    options.tls = MQTTOptions.TLS(caFile: folder.path + "/ca.crt")
    let error = try await TestClient(options).connectFailed()
    #expect(error.needsChange, "\(error)")
  }

  @Test func plainConnectionToATLSBrokerIsRetried() async throws {
    let folder = try await Self.certificates()
    let broker = try await broker(folder)
    let error = try await TestClient(.local(broker.port)).connectFailed()
    #expect(!error.needsChange)
  }
}
