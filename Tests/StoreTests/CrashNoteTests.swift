import EventLoop
import Glibc
import Store
import TestSupport
import Testing

@LoopActor @Suite struct CrashNoteTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path + "/here.crash" }

  init() throws { folder = try TemporaryFolder() }

  /// A run that dies while it handles a message of the topic; nil: at another time.
  private func die(handling topic: String?) -> CrashNote {
    let note = CrashNote(path: path)
    note.setHandling("microbit/a/info")
    note.setHandling(topic)
    return note
  }

  @Test("Deaths in a row are counted; after three the count begins again")
  func deathsOfAMessageAreCounted() {
    for count in [0, 1, 2, 3, 1, 2, 3, 1] {
      #expect(die(handling: "microbit/kitchen/info \(count)").deaths == count)
    }
    #expect(CrashNote(path: path).topic == "microbit/kitchen/info 1")
  }

  @Test("A run that is killed at another time, or ends by itself, begins the count again")
  func otherEndsDoNotCount() {
    for topic in ["x", nil, "x", "x", nil, nil] { #expect(die(handling: topic).deaths < 3) }
    let last = CrashNote(path: path)
    #expect(last.deaths == 0 && last.topic == nil)
  }

  @Test func deathsOfAnotherBootDoNotCount() {
    for boot in ["1", "2", "1"] {
      for count in 0..<3 {
        let note = CrashNote(path: path, boot: boot)
        #expect(note.deaths == count)
        note.setHandling("x")
      }
    }
  }

  @Test(arguments: ["\u{1}", "ÿÿÿÿ", "boot", "boot 1", "boot -1 x", "boot 3 x", "boot 9223372036854775807 x"])
  func aDamagedFileIsNotBelieved(content: String) throws {
    try folder.write([UInt8](content.utf8), to: "here.crash")
    let note = CrashNote(path: path, boot: "boot")
    #expect(note.deaths == 0 && note.topic == nil)
    note.setHandling("x")
    #expect(CrashNote(path: path, boot: "boot").deaths == 1, "it is used again")
  }

  @Test func whatIsNoFileIsLeft() {
    mkfifo(path, 0o600)
    CrashNote(path: path).setHandling("microbit/kitchen/info")
    var status = stat()
    #expect(CrashNote(path: path).deaths == 0)
    #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO)
  }

  @Test func noLinkIsFollowed() throws {
    try folder.write([UInt8]("other".utf8), to: "other")
    symlink(folder.path + "/other", path)
    CrashNote(path: path).setHandling("microbit/kitchen/info")
    #expect(Folder.content(ofFile: folder.path + "/other") == [UInt8]("other".utf8))
  }

  @Test(arguments: [nil, "/proc/none/here.crash"])
  func withoutAFileNothingIsNoted(path: String?) {
    let note = CrashNote(path: path)
    note.setHandling(String(repeating: "x", count: 70_000))
    #expect(note.deaths == 0 && note.topic == nil)
  }

  @Test func withoutABootNothingIsNoted() {
    CrashNote(path: path, boot: nil).setHandling("x")
    #expect(CrashNote(path: path, boot: nil).deaths == 0)
  }

  @Test func longTopicIsCut() {
    let note = CrashNote(path: path, boot: "boot")
    note.setHandling(String(repeating: "x", count: 70_000))
    #expect(CrashNote(path: path, boot: "boot").topic?.utf8.count == 4095 - "boot 0 ".utf8.count)
  }
}
