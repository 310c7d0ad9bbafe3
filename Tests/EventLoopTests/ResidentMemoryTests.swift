import EventLoop
import Testing

@Suite struct ResidentMemoryTests {
  /// A test process has many MiB of code mapped, of which it runs little at any time.
  @Test func trimmingLetsGoOfCodeThatDoesNotRun() throws {
    let before = try #require(ResidentMemory.kibibytes)
    ResidentMemory.trim()
    let after = try #require(ResidentMemory.kibibytes)
    #expect(after < before - 1024)
  }
}
