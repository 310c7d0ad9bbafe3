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
}
