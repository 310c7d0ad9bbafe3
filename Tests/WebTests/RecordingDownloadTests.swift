import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Recording
@testable import Web

@Suite struct RecordingDownloadTests {
  @Test("Of many downloads one is read at a time, and those whose client has gone are not")
  @LoopActor func oneAtATime() async throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { close(ends[0]) }
    let opened = Atomic(0)
    let ended = Waiter<Void>()
    let downloads = (0..<40).map { [end = ends[0]] _ in
      RecordingDownload { () throws(RecordingFailure) in
        opened.add(1, ordering: .relaxed)
        var byte: UInt8 = 0
        read(end, &byte, 1)
        throw RecordingFailure("there is none")
      }
    }
    downloads[39].onFailure = { ended.resume(.success(())) }
    for download in downloads { #expect(download.next() == []) }
    for download in downloads.dropLast() { download.end() }
    close(ends[1])
    try await ended.value()
    #expect(opened.load(ordering: .relaxed) <= 2)
  }

  /// On a slow machine the next piece can take longer than a client may take to read one.
  @Test("A client that reads slowly, or waits for the next piece, stays; one that reads nothing does not")
  @LoopActor func aSlowDownload() async throws {
    var ends: [Int32] = [0, 0]
    try #require(
      socketpair(
        AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
    let client = ends[1]
    defer { close(client) }
    let source = SlowBody()
    var hasEnded = false
    let connection = HTTPConnection(ends[0], peer: []) { _, connection in
      connection.respond(HTTPResponse(type: "text/csv", body: .source(source)))
    } onEnd: { _ in
      hasEnded = true
    }
    let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
    #expect(write(client, request, request.count) == request.count)
    try await eventually("the head is sent") {
      await { @LoopActor in source.calls > 1 && connection.unsent == 0 }()
    }
    for _ in 1...3 { connection.expire() }
    #expect(!hasEnded && connection.deadline != nil, "it waits for the first piece")

    source.piece = [UInt8](repeating: 46, count: 4 << 20)
    connection.pump()
    let unsent = connection.unsent
    try await eventually("the socket is full") { await connection.unsent < unsent }
    connection.expire()
    #expect(!hasEnded)
    for _ in 1...3 {
      let unsent = connection.unsent
      try await eventually("the client reads") {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        read(client, &buffer, buffer.count)
        return await connection.unsent < unsent
      }
      connection.expire()
      #expect(!hasEnded)
    }
    connection.expire()
    #expect(hasEnded)
  }
}

@LoopActor private final class SlowBody: BodySource {
  var piece: [UInt8] = []
  var calls = 0

  func next() -> [UInt8]? {
    calls += 1
    defer { piece = [] }
    return piece
  }

  func end() {}
}
