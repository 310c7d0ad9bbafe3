import Testing

@testable import Bridge

@Suite struct RunIDTests {
  @Test func isFourLettersOrDigits() {
    var seen: Set<String> = []
    for _ in 0..<100 {
      let run = RunID().description
      #expect(run.utf8.count == 4)
      #expect(run.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) })
      seen.insert(run)
    }
    #expect(seen.count > 95)
  }
}
