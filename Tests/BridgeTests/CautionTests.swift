import EventLoop
import Store
import TestSupport
import Testing

@testable import Bridge

@LoopActor @Suite struct CautionTests {
  private let folder: TemporaryFolder
  private var note: CrashNote { CrashNote(path: folder.path + "/here.crash") }

  init() throws { folder = try TemporaryFolder() }

  @Test("Three deaths make one run cautious: the next one tries again, even if that one was killed")
  func oneRunIsCautious() {
    for _ in 1...2 {
      for _ in 1...3 {
        let caution = Caution(note)
        #expect(caution.finding == nil)
        caution.connected()
      }
      let cautious = Caution(note)
      cautious.connected()
      cautious.admitted()
      #expect(cautious.finding?.line.contains("at the next start, it is taken again") == true, "it stays so")
    }
  }

  @Test("A run that has survived what was retained is on trial no more: not when it connects again")
  func oneTrialForARun() async throws {
    let caution = Caution(note, trial: .milliseconds(1))
    caution.connected()
    caution.admitted()
    try await eventually("it has survived") { await note.deaths == 0 }
    caution.disconnected()
    caution.connected()
    #expect(note.deaths == 0)
  }

  @Test("A cautious run takes everything after a while, on trial")
  func cautionEnds() async throws {
    for _ in 1...3 { Caution(note).connected() }
    let caution = Caution(note)
    caution.connected()
    let ends = Record<Bool>()
    caution.start(for: .milliseconds(1)) { ends.append(true) }
    _ = try await ends.next("the end of the caution") { $0 ? true : nil }
    #expect(caution.finding == nil)
    caution.connected()
    #expect(note.deaths == 1)
  }
}
