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
      #expect(cautious.finding?.line.contains("the next start tries again") == true, "it stays so")
    }
  }

  @Test("A run that has lived with what is retained, and is killed after a reconnect, has not died of it")
  func laterDeathsDoNotCount() async throws {
    for _ in 1...4 {
      let caution = Caution(note, trial: .zero)
      #expect(caution.finding == nil)
      caution.connected()
      caution.admitted()
      try await eventually("the end of the trial") { await caution.hasSurvived }
      caution.disconnected()
      caution.connected()
    }
  }
}
