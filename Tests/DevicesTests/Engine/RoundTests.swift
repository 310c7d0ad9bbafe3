import Configuration
import EventLoop
import GATT
import TestSupport
import Testing

@testable import Devices

/// The short turns at the begin of a recording, against a simulated bluetoothd.
@Suite struct RoundTests {
  private typealias Engine = EngineUnderTest

  @LoopActor private static func holder(_ tested: Engine) -> DeviceID? {
    tested.engine.devices.first { $0.session == .live }?.id
  }

  /// The micro:bit that has the only link, once that is another one than before.
  private static func holder(of tested: Engine, after before: DeviceID? = nil) async throws -> DeviceID {
    try await eventually("another one has the link") {
      await holder(tested).map { $0 != before } ?? false
    }
    return try #require(await holder(tested))
  }

  /// The one that is connected sends it.
  private static func sendLine(_ tested: Engine) async {
    let line = Hexadecimal.text(Array("n:1\n".utf8))
    for index in 0..<3 { await tested.notify(.microbitUART(2), line, by: index) }
  }

  /// A value of an earlier turn ends none; without a new one, a turn ends after five seconds.
  @Test func eachTurnOfARoundWaitsForANewValueOfTheProgram() async throws {
    var configuration = Configuration()
    (configuration.bluetooth.links, configuration.bluetooth.stay) = (1, 3600)
    let tested = try await Engine(configuration) {
      $0.services = [.uart]
      $0.devices = 3
    }
    var holder: DeviceID?
    for _ in 1...3 {
      holder = try await Self.holder(of: tested, after: holder)
      await Self.sendLine(tested)
    }
    await tested.engine.beginRound()
    // A busy machine may see the end of this turn late.
    let begin = Moment.now
    await Self.sendLine(tested)
    holder = try await Self.holder(of: tested, after: holder)
    _ = try await Self.holder(of: tested, after: holder)
    #expect(begin.duration(to: .now) > .seconds(3))
    await tested.end()
  }
}
