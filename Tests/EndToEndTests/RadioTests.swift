import Glibc
import Synchronization
import TestSupport
import Testing

/// A class that a wired micro:bit hears by radio: a pseudo-terminal in the place of its serial port.
@Suite struct RadioTests {
  /// The port, which may be plugged in and out.
  private final class Receiver: Sendable {
    let folder: TemporaryFolder
    private let terminal = Mutex<PseudoTerminal?>(nil)

    init() throws { folder = try TemporaryFolder() }

    var path: String { folder.path + "/receiver" }

    func plug() throws {
      let new = try PseudoTerminal()
      guard symlink(new.path, path) == 0 else { throw Failure("symlink: errno \(errno)") }
      terminal.withLock { $0 = new }
    }

    func unplug() {
      unlink(path)
      terminal.withLock { $0 = nil }
    }

    func type(_ text: String) { terminal.withLock { $0 }?.type(text) }
  }

  private static let start = ContinuousClock.now
  private static var elapsed: Int { Int((ContinuousClock.now - start) / .milliseconds(1)) + 10_000 }

  private static func line(_ sender: Int, _ name: String, _ value: Int, at time: Int) -> String {
    #"{"t":\#(time),"s":\#(sender + 3125 * 1000),"n":"\#(name)","v":\#(value)}"# + "\r\n"
  }

  /// The five letters of the sender with this number.
  private static func letters(_ sender: Int) -> String {
    var (rest, text) = (sender % 3125, "")
    for position in (0..<5).reversed() {
      text = String(Array(position % 2 == 0 ? "zvgpt" : "uoiea")[rest % 5]) + text
      rest /= 5
    }
    return text
  }

  private static func plan(_ receiver: Receiver, entries: String) -> Plan {
    var plan = Plan(devices: 0, entries: entries)
    plan.more = #""radio": {"enabled": true, "ports": ["\#(receiver.path)"]}"#
    plan.absent = [.simulator]
    return plan
  }

  @Test("Thirty senders join, and nothing is published twice, though the receiver is pulled out ten times")
  func aClass() async throws {
    let receiver = try Receiver()
    let senders = Array(0..<30)
    let plan = Self.plan(receiver, entries: #"{"match":{"radio":"\#(Self.letters(0))"},"name":"First"}"#)
    try await withFixture(plan) { fixture in
      receiver.unplug()
      try receiver.plug()
      func isRead(after mark: Int = 0) async throws {
        _ = try await fixture.message("\(fixture.bridge)/info", after: mark) {
          $0.text.contains(#""radio":[{"port""#) && !$0.text.contains(#""reason""#)
        }
      }
      try await isRead()
      let time = Self.elapsed
      receiver.type("half\n" + senders.map { Self.line($0, "temp", 1, at: time) }.joined())
      // The one that an entry matches is a device, the others are listed.
      try await fixture.message("\(Self.letters(0))/values/temp", "1")
      _ = try await fixture.message("\(fixture.bridge)/info") {
        $0.text.contains(#""identifier":"radio:002faf13","name":"\#(Self.letters(11))""#)
      }
      try await fixture.perform("permit_join", #"{"time":100}"#)
      receiver.type(senders.map { Self.line($0, "temp", 2, at: Self.elapsed) }.joined())
      for sender in senders { try await fixture.message("\(Self.letters(sender))/values/temp", "2") }
      for round in 3...12 {
        var mark = try fixture.observer.mark
        receiver.unplug()
        _ = try await fixture.message("\(fixture.bridge)/info", after: mark) {
          $0.text.contains(#""reason""#)
        }
        mark = try fixture.observer.mark
        try receiver.plug()
        try await isRead(after: mark)
        let time = Self.elapsed
        receiver.type("p\":1}\n" + senders.map { Self.line($0, "temp", round, at: time) }.joined())
        for sender in senders {
          _ = try await fixture.message("\(Self.letters(sender))/readings", after: mark) {
            $0.text.contains(#""property":"values/temp","value":\#(round),"#)
          }
        }
      }
      // All press at once, the last one first.
      let pressed = Self.elapsed - 400
      let mark = try fixture.observer.mark
      receiver.type(senders.reversed().map { Self.line($0, "a", 1, at: pressed + 10 * $0) }.joined())
      for sender in senders {
        _ = try await fixture.message("\(Self.letters(sender))/button_a", after: mark) {
          $0.text.contains(#""event_type":"press_start""#)
            && $0.text.contains(#""sender_time":\#(pressed + 10 * sender),"#)
        }
      }
      let presses = try fixture.observer.messages.dropFirst(mark).filter { $0.topic.hasSuffix("/button_a") }
      #expect(presses.count == senders.count)
      for sender in senders {
        let values = try fixture.observer.messages(on: "microbit/\(Self.letters(sender))/readings").compactMap
        {
          let json = try $0.json()
          return json["property"]?.string == "values/temp" ? json["value"]?.int : nil
        }
        #expect(values == Array((sender == 0 ? 1 : 2)...12), "\(Self.letters(sender))")
      }
      #expect(presses.map(\.topic) == senders.reversed().map { "microbit/\(Self.letters($0))/button_a" })
    }
  }

  @Test("What two receivers of a gateway and one of another gateway hear at once counts once")
  func severalReceivers() async throws {
    let receivers = [try Receiver(), try Receiver(), try Receiver()]
    for receiver in receivers { try receiver.plug() }
    let id = Self.letters(7)
    func plan(_ gateway: String, _ receivers: ArraySlice<Receiver>) -> Plan {
      var plan = Plan(id: gateway, entries: #"{"match":{"radio":"\#(id)"}}"#)
      let paths = receivers.map { "\"\($0.path)\"" }.joined(separator: ",")
      plan.more = #""radio": {"enabled": true, "ports": [\#(paths)]}"#
      return plan
    }
    try await withCluster([plan("ground", receivers[..<2]), plan("attic", receivers[2...])]) { cluster in
      for fixture in cluster.fixtures {
        _ = try await cluster[0].message("\(fixture.bridge)/info") {
          $0.text.contains(#""radio":[{"port""#) && !$0.text.contains(#""reason""#)
        }
      }
      func type(_ name: String, _ value: Int, to receivers: some Sequence<Receiver>) {
        let line = Self.line(7, name, value, at: Self.elapsed)
        for receiver in receivers { receiver.type(line) }
      }
      for receiver in receivers { receiver.type("half\n") }
      type("temp", 1, to: receivers[..<2])
      try await cluster[0].waitForOwnership(of: id)
      // The other gateway has the device from the first packet on that it hears itself. Then both know who owns it.
      type("temp", 1, to: receivers[2...])
      _ = try await cluster[0].message("\(cluster[1].bridge)/devices") {
        $0.text.contains(#""identifier":"radio:"#)
      }
      for gateway in [1, 0, 1] { try await cluster[gateway].synchronizeGateway() }
      for value in 2...6 {
        type("temp", value, to: receivers)
        _ = try await cluster[0].message("\(id)/readings") {
          $0.text.contains(#""property":"values/temp","value":\#(value),"#)
        }
      }
      for (value, word) in ["press_end", "press_start", "long_press_start"].enumerated() {
        type("a", value, to: receivers)
        _ = try await cluster[0].message("\(id)/button_a") { $0.text.contains(#""\#(word)""#) }
      }
      // The last one that the other gateway could repeat.
      type("end", 1, to: receivers)
      try await cluster[0].message("\(id)/values/end", "1")
      try await cluster[1].synchronizeGateway()
      let readings = try cluster[0].observer.messages(on: "microbit/\(id)/readings").map { try $0.json() }
      let values = readings.filter { $0["property"]?.string == "values/temp" }.compactMap { $0["value"]?.int }
      #expect(values.filter { $0 > 1 } == Array(2...6))
      let presses = try cluster[0].observer.messages(on: "microbit/\(id)/button_a").map { try $0.json() }
      #expect(presses.map { $0["event_type"]?.string } == ["press_end", "press_start", "long_press_start"])
      #expect(presses.allSatisfy { $0["sender_time"] != nil })
    }
  }

  @Test("A value that is set goes out by radio, and is applied when the micro:bit sends it back")
  func setting() async throws {
    try await withSimulatedClass("senders=2,presses=0", send: true) { fixture, state in
      let name = try await state()["names"]?.array?.first?.string ?? ""
      _ = try await fixture.message("\(fixture.bridge)/info") { $0.text.contains(#""sends":true"#) }
      func set(_ value: String, _ payload: String) async throws -> JSON {
        let mark = try fixture.observer.mark
        try await fixture.observer.publish("microbit/\(name)/values/\(value)/set", payload)
        return try await fixture.message("\(name)/values/\(value)/result", after: mark).json()
      }
      let applied = try await set("servo", "90")
      #expect(applied["status"]?.string == "applied" && applied["actual"]?.int == 90, "\(applied)")
      try await fixture.message("\(name)/values/servo", "90")
      let long = try await set("brightness", "1000")
      #expect(long["status"]?.string == "rejected", "\(long)")
      let forwarded = try await state()["forwarded"]?.int
      #expect(forwarded == 1)
    }
  }

  @Test("Nothing is written to a receiver unless the configuration asks for it")
  func notSetting() async throws {
    try await withSimulatedClass("senders=1,presses=0,every=200", send: false) { fixture, state in
      let name = try await state()["names"]?.array?.first?.string ?? ""
      try await fixture.observer.publish("microbit/\(name)/values/servo/set", "90")
      let result = try await fixture.message("\(name)/values/servo/result").json()
      #expect(result["status"]?.string == "rejected", "\(result)")
      #expect(result["reason"]?.string?.contains("no receiver forwards values") == true, "\(result)")
      let known = try await fixture.perform("device/inspect", #"{"id":"\#(name)"}"#)
      #expect(
        known["identifier"]?.string == "radio:\(name)" && known["profile"]?.string == "radio", "\(known)")
      let written = try await state()["written"]?.int
      #expect(written == 0)
    }
  }

  /// Runs `body` when the first sender of a simulated class is a device.
  /// - Parameter body: gets what asks the receiver's state.
  private func withSimulatedClass(
    _ scenario: String, send: Bool,
    _ body:
      @escaping @Sendable (Fixture, _ state: @escaping @Sendable () async throws -> JSON) async throws
      -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    let port = folder.path + "/receiver"
    var plan = Plan(devices: 0, entries: "")
    plan.simulator = ["--radio", folder.path, "--radio-scenario", scenario]
    plan.more = #""radio": {"enabled": true, "ports": ["\#(port)"], "send": \#(send)}"#
    try await withFixture(plan) { fixture in
      let state: @Sendable () async throws -> JSON = {
        try await fixture.simulator.control(#"{"op":"radio"}"#)
      }
      let path = try await state()["path"]?.string ?? ""
      guard symlink(path, port) == 0 else { throw Failure("symlink: errno \(errno)") }
      _ = try await fixture.message("\(fixture.bridge)/info") {
        $0.text.contains(#""radio":[{"port""#) && !$0.text.contains(#""reason""#)
      }
      try await fixture.perform("permit_join", #"{"time":100}"#)
      let name = try await state()["names"]?.array?.first?.string ?? ""
      _ = try await fixture.message("\(name)/values/temp") { _ in true }
      try await body(fixture, state)
    }
  }
}
