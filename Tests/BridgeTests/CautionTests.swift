import EventLoop
import Store
import TestSupport
import Testing

@testable import Bridge
@testable import MQTT

@LoopActor @Suite struct CautionTests {
  private let folder: TemporaryFolder
  private var note: CrashNote { CrashNote(path: folder.path + "/here.crash") }

  init() throws { folder = try TemporaryFolder() }

  @Test("Three deaths make one run cautious: the next one takes everything again, however that one ends")
  func oneRunIsCautious() {
    for _ in 1...2 {
      for _ in 1...3 {
        let note = note
        #expect(Caution(note).finding == nil)
        note.setHandling("microbit/shed/info")
      }
      #expect(Caution(note).finding?.line.contains(#"the last one "microbit/shed/info""#) == true)
    }
  }

  @Test("The topic is noted while a retained message is handled, and only then")
  func handling() {
    let caution = Caution(note)
    for isRetained in [true, false] {
      let message = MQTTReceived(
        topic: topicName("microbit/shed/info"), payload: [], qos: .atLeastOnce, retain: isRetained)
      var noted: String?
      caution.noting(message) { noted = note.topic }
      #expect(noted == (isRetained ? "microbit/shed/info" : nil))
      #expect(note.topic == nil)
    }
  }

  @Test("A cautious run takes everything after a while")
  func cautionEnds() async throws {
    for _ in 1...3 { note.setHandling("microbit/shed/info") }
    let caution = Caution(note)
    let ends = Record<Bool>()
    caution.start(for: .milliseconds(1)) { ends.append(true) }
    _ = try await ends.next("the end of the caution") { $0 ? true : nil }
    #expect(caution.finding == nil)
  }
}
