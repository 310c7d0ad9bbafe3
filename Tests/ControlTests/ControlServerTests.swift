import Devices
import Glibc
import Sockets
import TestSupport
import Testing

@testable import Control

@Suite struct ControlServerTests {
  /// The begin of the answer to `health`.
  private static let healthy = #"{"status":"ok","data":{"healthy":true,"#

  private static let refused: [(String, String, String)] = [
    ("", "the line is not valid JSON", "invalid"),
    ("nonsense", "the line is not valid JSON", "invalid"),
    ("[1]", "the line is a list, not an object", "invalid"),
    ("{}", "the key request is missing", "invalid"),
    (#"{"request":7}"#, "the key request is missing", "invalid"),
    (#"{"request":"fly"}"#, "unknown request", "invalid"),
    (#"{"request":"device/inspct"}"#, "did you mean device/inspect?", "invalid"),
    (#"{"request":"health","colour":1}"#, "colour: unknown key", "invalid"),
    (#"{"request":"device/inspect"}"#, "id: this is missing", "invalid"),
    (#"{"request":"property/get","id":"kitchen"}"#, "property: this is missing", "invalid"),
    (
      #"{"request":"property/get","id":"attic","property":"temperature"}"#, "no device is called attic",
      "not_found"
    ),
    (#"{"request":"property/get","id":"kitchen","property":"wings"}"#, "no property wings", "invalid"),
    (#"{"request":"property/set","id":"kitchen","property":"period"}"#, "value: this is missing", "invalid"),
    (#"{"request":"watch","id":"attic"}"#, "no device is called attic", "not_found"),
    (#"{"request":"watch","id":"kitchen","property":"wings"}"#, "no property wings", "invalid"),
    (#"{"request":"watch","speed":1}"#, "speed: unknown key", "invalid"),
    (
      #"{"request":"property/get","id":"kitchen","property":"temperature"}"#, "the device is offline",
      "unavailable"
    ),
  ]

  @Test(
    "A failing request gets an error with its code, and the next one is answered", arguments: refused)
  func refusals(line: String, reason: String, code: String) async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    let answer = try #require(try await client.request(line))
    #expect(
      answer.hasPrefix(#"{"status":"error","code":"\#(code)","error":""#) && answer.contains(reason),
      "\(answer)")
    #expect(try await client.request(#"{"request":"health"}"#)?.hasPrefix(Self.healthy) == true)
  }

  @Test("Who may set the gateway up is told to its own user, and not by requests from elsewhere")
  func setup() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    let closed = try await client.request(#"{"request":"setup"}"#)
    #expect(closed?.contains("the gateway cannot be set up in a browser") == true)
    #expect(
      try await client.request(#"{"request":"setup","code":"x"}"#)?.contains("code: unknown key") == true)
    try await server.allowSetup()
    #expect(try await client.request(#"{"request":"setup"}"#) == #"{"status":"ok","data":{"code":"x"}}"#)
  }

  @Test("A transaction is returned, also with an error")
  func transactions() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    let answer = try await client.request(#"{"request":"health","transaction":"a"}"#)
    #expect(answer?.hasPrefix(Self.healthy) == true && answer?.hasSuffix(#"},"transaction":"a"}"#) == true)
    let refusal = try await client.request(#"{"request":"fly","transaction":"b"}"#)
    #expect(refusal?.hasSuffix(#","transaction":"b"}"#) == true, "\(refusal ?? "")")
    let number = try await client.request(#"{"request":"health","transaction":23}"#)
    #expect(number?.hasSuffix(#"},"transaction":23}"#) == true, "\(number ?? "")")
  }

  @Test("Several lines at once are all answered, in order")
  func pipelining() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    let count = 300
    client.send((0..<count).map { #"{"request":"health","transaction":"\#($0)"}"# + "\n" }.joined())
    for index in 0..<count {
      let line = try await client.line()
      #expect(line?.hasSuffix(#""transaction":"\#(index)"}"#) == true)
    }
  }

  @Test("A line that is received in pieces is parsed as one")
  func pieces() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    client.send(#"{"request":"#)
    let other = try LineClient(server.path)
    _ = try await other.request(#"{"request":"health"}"#)
    client.send(#""health"}"# + "\n")
    #expect(try await client.line()?.hasPrefix(Self.healthy) == true)
  }

  @Test("A line that is too long disconnects its client only")
  func longLine() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    let other = try LineClient(server.path)
    let text = String(repeating: "x", count: 32 << 10)
    for _ in 0...4 { client.send(text) }
    #expect(try await client.line() == nil)
    #expect(try await other.request(#"{"request":"health"}"#) != nil)
  }

  @Test("A request above 64 KiB is refused, and the next one is answered")
  func longRequest() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    let text = String(repeating: "x", count: 64 << 10)
    let answer = try await client.request(#"{"request":"device/remove","id":"\#(text)"}"#)
    #expect(
      answer == #"{"status":"error","code":"invalid","error":"the payload has more than 65536 bytes"}"#)
    #expect(try await client.request(#"{"request":"health"}"#)?.hasPrefix(Self.healthy) == true)
  }

  @Test("A client that stops sending gets its answers, and is then disconnected")
  func halfClosed() async throws {
    let server = try await ServerUnderTest()
    let client = try LineClient(server.path)
    client.send(#"{"request":"health"}"# + "\n")
    client.endSending()
    #expect(try await client.line() != nil)
    #expect(try await client.line() == nil)
  }

  @Test("A client that disconnects within a line or an answer does not affect others")
  func hangUp() async throws {
    let server = try await ServerUnderTest()
    for text in [#"{"request":"hea"#, #"{"request":"health"}"# + "\n", #"{"request":"watch"}"# + "\n"] {
      let client = try LineClient(server.path)
      client.send(text)
      client.hangUp()
    }
    let other = try LineClient(server.path)
    #expect(try await other.request(#"{"request":"health"}"#) != nil)
  }

  @Test("Clients beyond the maximum wait until another one disconnects")
  func tooManyClients() async throws {
    let server = try await ServerUnderTest()
    var clients = try (0..<ControlServer.mostClients).map { _ in try LineClient(server.path) }
    for client in clients { _ = try await client.request(#"{"request":"health"}"#) }
    let late = try LineClient(server.path)
    late.send(#"{"request":"health","transaction":"late"}"# + "\n")
    _ = try await clients[0].request(#"{"request":"health"}"#)
    clients.removeFirst().hangUp()
    #expect(try await late.line()?.contains("late") == true)
  }

  @Test("The command line says what a client beyond the maximum waits for")
  func clientBeyondTheMaximum() async throws {
    let server = try await ServerUnderTest()
    let clients = try (0..<ControlServer.mostClients).map { _ in try LineClient(server.path) }
    for client in clients { _ = try await client.request(#"{"request":"health"}"#) }
    let path = server.path
    let connected = try await server.onLoop { ControlClient(try UnixSocket.connect(to: path)) }
    func reason() async -> String? {
      do throws(RequestError) {
        _ = try await connected.request("health", within: .milliseconds(50))
        return nil
      } catch {
        return error.reason
      }
    }
    #expect(
      await reason()
        == "the gateway does not answer: perhaps 16 programs are connected to it, and one of them has to end first"
    )
    for client in clients { client.hangUp() }
  }

  @Test("The socket is accessible to its user and group only, and is removed on stop")
  func mode() async throws {
    let server = try await ServerUnderTest()
    var status = stat()
    #expect(stat(server.path, &status) == 0)
    #expect(status.st_mode & 0o777 == 0o660)
    let control = await server.server
    try await server.onLoop { control.stop() }
    #expect(access(server.path, F_OK) != 0)
  }

  /// Binds a socket that never listens. If it did, a child process of another test could keep it listening.
  private static func leaveSocket(at path: String) throws {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    guard withUnixAddress(path, { bind(descriptor, $0, $1) }) == 0 else {
      throw Failure("bind: errno \(errno)")
    }
  }

  @Test("A stale socket is replaced; that of a running gateway is not")
  func secondGateway() async throws {
    let server = try await ServerUnderTest()
    let path = server.path
    let second = await ControlServer(server.host)
    let error = try await server.onLoop { () -> RequestError? in
      do throws(RequestError) {
        try second.listen(at: path)
        return nil
      } catch {
        return error
      }
    }
    #expect(error?.reason.contains("in use by another gateway") == true)
    // No connection is accepted, and the queue is full.
    let full = server.folder.path + "/full.sock"
    let listener = try UnixSocket.listen(at: full, mode: 0o600)
    var waiting: [LineClient] = []
    while let client = try? LineClient(full) { waiting.append(client) }
    #expect(!waiting.isEmpty)
    await #expect(throws: RequestError.self) { try await server.onLoop { try second.listen(at: full) } }
    close(listener)
    let left = server.folder.path + "/left.sock"
    try Self.leaveSocket(at: left)
    try await server.onLoop { try second.listen(at: left) }
    let client = try LineClient(left)
    #expect(try await client.request(#"{"request":"health"}"#) != nil)
  }
}
