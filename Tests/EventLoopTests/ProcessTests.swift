import Testing

@testable import EventLoop

@Suite struct ProgramArgumentsTests {
  @Test func theKernelKnowsThemToo() {
    #expect(ProgramArguments.all == CommandLine.arguments)
  }
}
