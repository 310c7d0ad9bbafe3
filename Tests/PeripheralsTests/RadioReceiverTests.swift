import EventLoop
import Testing

@testable import Peripherals

/// The simulated receiver and its senders.
@Suite struct RadioReceiverTests {
  private let start = Moment.now

  /// What is printed within a time, line by line.
  private func lines(
    _ scenario: String, _ time: Duration = .seconds(60)
  ) throws -> (lines: [String], receiver: RadioReceiver) {
    var receiver = RadioReceiver(try RadioScenario(scenario), at: start, seed: 1)
    let lines = receiver.advance(to: start + time).split(separator: 10).map {
      String(decoding: $0, as: UTF8.self)
    }
    return (lines, receiver)
  }

  @Test func aClassPrintsTheNamesOfItsThirtySenders() throws {
    let (lines, receiver) = try lines("class_by_radio")
    #expect(lines.allSatisfy { $0.utf8.count == 31 && $0.hasSuffix("\r") })
    let names = Set(lines.map { String($0.prefix { $0 != "," }) })
    #expect(names == Set(receiver.names) && names.count == 30)
    let counts = receiver.counts
    #expect(counts.printed == lines.count && counts.overrun == 0 && counts.lost == 0)
    #expect((1700...1900).contains(counts.sent))
    // Unslotted ALOHA: 2 % at 30 packets a second.
    #expect((18...60).contains(counts.collided), "\(counts)")
    #expect(lines.contains { $0.contains(",a,1 ") })
  }

  @Test func eachFormIsThatOfMakeCode() throws {
    let (values, _) = try lines("form=values,senders=1,presses=0", .seconds(3))
    #expect(values.allSatisfy { $0.hasPrefix("temp:") && $0.utf8.count == 31 } && !values.isEmpty)
    let (json, _) = try lines("form=json,senders=1,presses=0", .seconds(3))
    let isJSON = json.allSatisfy { $0.hasPrefix(#"{"t":"#) && $0.contains(#","n":"temp","v":"#) }
    #expect(isJSON && json.allSatisfy { $0.hasSuffix("}\r") } && !json.isEmpty)
  }

  @Test func packetsAreLost() throws {
    let (_, receiver) = try lines("form=json,loss=50")
    #expect((700...1000).contains(receiver.counts.lost))
  }

  @Test func tooManyAtOnceAreLost() throws {
    var receiver = RadioReceiver(try RadioScenario("presses=0,every=86400000"), at: start, seed: 1)
    for index in 0..<30 { receiver.press(index, at: start + .microseconds(400 * index)) }
    let printed = receiver.advance(to: start + .seconds(1))
    let counts = receiver.counts
    #expect(printed.count == counts.printed * 32 && counts.collided == 0)
    #expect(counts.overrun > 10 && counts.printed + counts.overrun == 30)
  }

  @Test func whatIsForwardedComesBack() throws {
    var receiver = RadioReceiver(
      try RadioScenario("senders=2,presses=0,every=86400000"), at: start, seed: 1)
    let name = receiver.names[1]
    receiver.take(Array("hello\n\(name)>servo:90\nother>servo:1\n".utf8), at: start)
    let printed = String(decoding: receiver.advance(to: start + .seconds(1)), as: UTF8.self)
    let line = "\(name),servo,90"
    #expect(printed == "forwards\r\n\(line)\(String(repeating: " ", count: 30 - line.utf8.count))\r\n")
    var silent = RadioReceiver(try RadioScenario("forwards=0,every=86400000"), at: start, seed: 1)
    silent.take(Array("hello\n".utf8), at: start)
    #expect(silent.advance(to: start + .seconds(1)).isEmpty)
  }

  @Test(arguments: [
    "school", "form=xml", "senders=0", "senders", "loss=101", "every=1", "twins=1", "loss=-1",
  ])
  func aWrongScenarioIsRefused(_ text: String) {
    #expect(throws: PeripheralError.self) { try RadioScenario(text) }
  }
}
