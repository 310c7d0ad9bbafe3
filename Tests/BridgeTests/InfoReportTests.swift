import EventLoop
import TestSupport
import Testing

@testable import Bridge

/// When a gateway publishes its `info`.
@Suite(.serialized) struct InfoReportTests {
  /// Micro:bits that take turns change all the time, and counters with each message.
  @Test func countersAloneWaitForTheMinute() async throws {
    let broker = try await MosquittoBroker()
    let tested = try await BridgeUnderTest(broker)
    try await tested.message("bridge/here/info", #""connects":1"#)
    try await tested.pausesReport()
    let start = tested.messages.count
    await tested.reportsChange()
    try await tested.pausesReport()
    #expect(try await tested.payloads("bridge/here/info", from: start).isEmpty)
    loop.onLoop { tested.bridge.report.fleet = FleetStatus(version: 7) }
    try await tested.message("bridge/here/info", #""fleet":{"version":7"#, from: start)
    let next = tested.messages.count
    loop.onLoop { tested.bridge.report.publishAgain() }
    try await tested.message("bridge/here/info", #""commands""#, from: next)
    await tested.end()
  }
}

extension BridgeUnderTest {
  @LoopActor fileprivate func reportsChange() { bridge.report.changed() }

  /// Waits until what has changed is reported.
  fileprivate func pausesReport() async throws {
    try await eventually("the end of the report") { await self.bridge.report.infoTimer?.isPending != true }
  }
}
