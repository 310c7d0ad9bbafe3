import Configuration
import EventLoop
import JSON
import Log
import Peripherals
import TestSupport
import Testing

@testable import BlueZSimulator
@testable import Devices

/// The data log of a micro:bit V2, over links that end.
@Suite struct LogTests {
  private typealias Engine = EngineUnderTest

  private static func configuration(log: Bool = false, every: Int? = nil) -> Configuration {
    var configuration = Configuration()
    var entry = Configuration.Device(match: .identifier(Engine.address))
    entry.log = log
    entry.connect = every == nil ? nil : .onDemand
    entry.every = every
    configuration.devices = [entry]
    return configuration
  }

  private static func simulation(_ options: inout SimulatorOptions) {
    options.services = [.temperature, .log]
    options.timing.logReply = .milliseconds(1)
  }

  private static func heading(_ rows: Int) -> String {
    "Time (seconds),n\n" + (1...rows).map { "\($0),\($0)\n" }.joined()
  }

  /// The rows that the front end got, as `row/run`.
  private static func rows(_ tested: Engine) -> [String] {
    tested.frontEnd.events.elements.compactMap { event in
      if case .logged(let row, _) = event { "\(row.row)/\(row.run)" } else { nil }
    }
  }

  private static func row(_ row: Int, _ run: Int, of tested: Engine) async throws -> Timestamp? {
    let event = try await tested.frontEnd.event("row \(row) of run \(run)") {
      if case .logged(let logged, _) = $0 { logged.row == row && logged.run == run } else { false }
    }
    guard case .logged(_, let measured) = event else { return nil }
    return measured
  }

  @Test func requestReadsTheLogOverSeveralLinks() async throws {
    let tested = try await Engine(Self.configuration()) {
      Self.simulation(&$0)
      // Slow enough that a part of the log is seen.
      $0.timing.logReply = .milliseconds(20)
    }
    try await tested.frontEnd.availability(true)
    let text = Self.heading(400)
    await tested.log(text, afterClearing: true)
    async let log = tested.engine.log(of: Engine.id)
    for _ in 0..<3 {
      let before = tested.frontEnd.events.count
      try await eventually("some more of the log") { await tested.engine.hasCopied(Engine.id) }
      await tested.hangUp()
      try await tested.frontEnd.availability(true, from: before)
    }
    let copy = try await log
    #expect(copy == Array(text.utf8))
    #expect(Self.rows(tested).isEmpty, "nothing is published unless the entry says so")
    await tested.end()
  }

  @Test func requestIsRefusedWithoutALog() async throws {
    let tested = try await Engine(Self.configuration(log: true))
    try await tested.frontEnd.availability(true)
    await #expect(throws: RequestError.self) { try await tested.engine.log(of: Engine.id) }
    await tested.end()
  }

  @Test func newRowsArePassedOnOnceOverLinksAndRestarts() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/state.db"
    let first = try await Engine(Self.configuration(log: true), state: path, Self.simulation)
    let measured = try await Self.row(2, 1, of: first)
    #expect(measured == nil, "written before there was a link")
    await first.log("11,23\n")
    let before = first.frontEnd.events.count
    await first.hangUp()
    try await first.frontEnd.availability(true, from: before)
    _ = try await Self.row(3, 1, of: first)
    await first.end()
    #expect(Self.rows(first) == ["1/1", "2/1", "3/1"])

    let second = try await Engine(
      Self.configuration(log: true), state: path, isInRange: false, Self.simulation)
    // The program has started again meanwhile.
    await second.log("11,23\n0,24\n")
    await second.comeBack()
    _ = try await Self.row(4, 2, of: second)
    await second.log("n\n1\n", afterClearing: true)
    await second.hangUp()
    _ = try await Self.row(1, 3, of: second)
    #expect(Self.rows(second) == ["4/2", "1/3"])
    await second.end()
  }

  /// As in pairing mode, in which the program does not run, or with the extension datalogger alone.
  @Test func aLogWithoutAnyOtherServiceIsRead() async throws {
    let tested = try await Engine(Self.configuration(log: true)) {
      $0.services = [.log]
      $0.timing.logReply = .milliseconds(1)
    }
    try await tested.frontEnd.availability(true)
    _ = try await Self.row(2, 1, of: tested)
    let copy = try await tested.engine.log(of: Engine.id)
    #expect(!copy.isEmpty)
    await tested.end()
  }

  /// It is noted although the link is of no use without the setting.
  @Test func aLogThatIsNotPublishedIsKnown() async throws {
    let tested = try await Engine(Self.configuration()) { $0.services = [.log] }
    _ = try await tested.frontEnd.event("the log is known") {
      if case .changed(_, let description) = $0 { description.mayHaveLog } else { false }
    }
    await tested.end()
  }

  /// Else a device that could not be used is tried again later and later.
  @Test func logThatIsSwitchedOnMakesADeviceUsableAtOnce() async throws {
    let tested = try await Engine(Self.configuration()) {
      $0.services = [.log]
      $0.timing.logReply = .milliseconds(1)
    }
    try await tested.frontEnd.change("it cannot be used") {
      if case .unsuitable = $0.trouble { $0.session == .waiting } else { false }
    }
    var patch = DeviceOptionsPatch()
    patch.options.log = true
    let begin = Moment.now
    _ = try await tested.engine.change(Engine.id, patch)
    _ = try await Self.row(2, 1, of: tested)
    #expect(begin.duration(to: .now) < .seconds(35))
    await tested.end()
  }

  @Test func whatAnotherGatewayHasReadFurtherCountsWhoeverOwnsTheDevice() async throws {
    let tested = try await Engine(Self.configuration(log: true), Self.simulation)
    _ = try await Self.row(2, 1, of: tested)
    var table = LogTable()
    _ = table.take(Array("Time (seconds),temperature\n0.5,21\n".utf8))
    let behind = table.position
    _ = table.take(Array("10.5,22\n11,23\n".utf8))
    await tested.log("11,23\n12,24\n")
    for log in [table.position, behind] {
      await tested.engine.setOwner(.this, of: Engine.id, Handover(log: log))
    }
    await tested.hangUp()
    _ = try await Self.row(4, 1, of: tested)
    #expect(Self.rows(tested) == ["1/1", "2/1", "4/1"])
    await tested.end()
  }

  @Test func visitReadsAllAndEnds() async throws {
    let tested = try await Engine(
      Self.configuration(log: true, every: 600), isInRange: false, Self.simulation)
    await tested.log(Self.heading(100), afterClearing: true)
    await tested.comeBack()
    _ = try await Self.row(100, 1, of: tested)
    try await tested.frontEnd.idle()
    #expect(Self.rows(tested).count == 100)
    await tested.end()
  }

  @Test func requestOptionBeginsOnTheLinkThatThereIs() async throws {
    let tested = try await Engine(Self.configuration(), Self.simulation)
    try await tested.frontEnd.availability(true)
    var patch = DeviceOptionsPatch()
    patch.options.log = true
    _ = try await tested.engine.change(Engine.id, patch)
    _ = try await Self.row(2, 1, of: tested)
    await tested.end()
  }
}

extension DeviceManager {
  /// Whether a request has read some of the log, and the rest is missing.
  fileprivate func hasCopied(_ id: DeviceID) -> Bool {
    guard let log = registry.all.first(where: { $0.id == id })?.dataLog else { return false }
    return !log.copy.isEmpty && log.copy.count < log.length
  }
}
