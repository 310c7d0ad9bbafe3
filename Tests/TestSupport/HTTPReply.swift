/// The answer of an HTTP server.
public struct HTTPReply: Sendable {
  /// 200 …
  public let status: Int
  /// The lines of the header.
  public let headers: [String]
  /// What follows the header, as it was sent.
  public let body: String

  /// Makes a request of HTTP/1.0 to a server on the loopback interface, which closes the connection after its answer.
  public init(
    _ request: String, port: UInt16, _ headers: [String] = [], body: String? = nil
  ) async throws {
    let client = try LineClient(port: port)
    let length = body.map { ["Content-Length: \($0.utf8.count)", "Content-Type: application/json"] } ?? []
    let lines = ["\(request) HTTP/1.0"] + headers + length
    client.send(lines.map { $0 + "\r\n" }.joined() + "\r\n" + (body ?? ""))
    try await self.init(client.rest())
  }

  /// Splits what was received.
  public init(_ text: String) throws {
    guard let end = text.firstRange(of: "\r\n\r\n") else { throw Failure("no answer: \(text)") }
    let lines = text[..<end.lowerBound].split(separator: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.count > 1, let status = Int(words[1]) else { throw Failure("no status: \(lines[0])") }
    self.status = status
    headers = lines.dropFirst().map(String.init)
    body = String(text[end.upperBound...])
  }
}
