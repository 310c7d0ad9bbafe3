import EventLoop
import Glibc
import Store
import TestSupport
import Testing

@LoopActor @Suite struct CrashNoteTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path + "/here.crash" }

  init() throws { folder = try TemporaryFolder() }

  @Test func deathsWhileTakingAreCountedWithTheTopic() {
    #expect(CrashNote(path: path).deaths == 0, "the first run")
    for count in 0..<300 {
      // Released as at a crash.
      let note = CrashNote(path: path)
      #expect(note.deaths == min(count, 255) && note.topic == nil)
      note.setTaking(true)
      note.setHandling("microbit/kitchen/info")
      note.setHandling("")
    }
    let last = CrashNote(path: path)
    last.setTaking(true)
    last.setHandling("microbit/kitchen/info")
    #expect(CrashNote(path: path).topic == "microbit/kitchen/info")
    last.setTaking(true)
    last.setHandling("")
    #expect(CrashNote(path: path).topic == nil)
    last.setTaking(true)
    last.survived()
    #expect(CrashNote(path: path).deaths == 0)
  }

  @Test func deathsOfAnotherBootDoNotCount() {
    let boots = ["1", "2"].map { String(repeating: $0, count: 36) }
    for boot in [boots[0], boots[1], boots[0]] {
      for count in 0..<3 {
        let note = CrashNote(path: path, boot: boot)
        #expect(note.deaths == count)
        note.setTaking(true)
      }
    }
  }

  @Test func aDamagedFileIsNotBelieved() throws {
    for byte: UInt8 in [0xFF, 1] {
      try folder.write([UInt8](repeating: byte, count: 4096), to: "here.crash")
      let note = CrashNote(path: path)
      #expect(note.deaths == 0 && note.topic == nil)
      note.setTaking(true)
      #expect(CrashNote(path: path).deaths == 1, "it is used again")
    }
  }

  @Test(arguments: [nil, "", "1"])
  func withoutABootNothingIsNoted(boot: String?) {
    CrashNote(path: path, boot: boot).setTaking(true)
    #expect(CrashNote(path: path, boot: boot).deaths == 0)
  }

  @Test func aRunThatTakesNothingDoesNotCount() {
    for _ in 1...5 {
      let note = CrashNote(path: path)
      note.setTaking(true)
      note.setTaking(false)
      #expect(note.deaths == 0)
    }
  }

  @Test func whatIsNoFileIsLeft() {
    mkfifo(path, 0o600)
    let note = CrashNote(path: path)
    note.setTaking(true)
    note.setHandling("microbit/kitchen/info")
    var status = stat()
    #expect(CrashNote(path: path).deaths == 0)
    #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test(arguments: [nil, "/proc/none/here.crash"])
  func withoutAFileNothingIsNoted(path: String?) {
    let note = CrashNote(path: path)
    note.setTaking(true)
    note.setHandling(String(repeating: "x", count: 70_000))
    note.survived()
    #expect(note.deaths == 0 && note.topic == nil)
  }

  @Test func longTopicIsCut() {
    let note = CrashNote(path: path)
    note.setTaking(true)
    note.setHandling(String(repeating: "x", count: 70_000))
    #expect(CrashNote(path: path).topic?.utf8.count == 4057)
  }
}
