import GATT
import TestSupport
import Testing

@testable import Peripherals

@Suite struct GeneratorTests {
  private static func bytes(_ count: Int, _ text: String, _ property: Property = .made()) throws -> [[UInt8]]
  {
    var generator = try Generator(text, for: property)
    return (0..<count).flatMap { _ in generator.next().packets }
  }

  private static func reason(_ text: String, _ property: Property = .made()) -> String? {
    do throws(PeripheralError) {
      _ = try Generator(text, for: property)
      return nil
    } catch {
      return error.description
    }
  }

  @Test func constantRepeatsItsValue() throws {
    #expect(try Self.bytes(3, "constant:7") == [[7], [7], [7]])
    var generator = try Generator("constant:7", for: .made())
    #expect(generator.next().wait == .seconds(1))
    var fast = try Generator("constant:7@20", for: .made())
    #expect(fast.next().wait == .milliseconds(20))
  }

  @Test func constantCanBeRecordOrWord() throws {
    #expect(
      try Self.bytes(1, #"constant:{"x":1,"y":2,"z":-1}@50"#, .microbitAccelerometer) == [
        [1, 0, 2, 0, 0xFF, 0xFF]
      ])
    #expect(try Self.bytes(1, "constant:press_start", .microbitButtonA) == [[1]])
  }

  /// Lines as MakeCode's `bluetooth uart write value` sends them.
  @Test func valuesOfAProgramAreLines() throws {
    func lines(_ count: Int, _ assignment: String) throws -> String {
      var generator = try Generator(assignment, of: .microbit, seed: 1)
      let packets = (0..<count).flatMap { _ in generator.next().packets }
      #expect(packets.allSatisfy { $0.count <= 20 })
      return String(decoding: packets.joined(), as: UTF8.self)
    }
    #expect(try lines(3, "values/counter=ramp:1:2:1") == "counter:1\ncounter:2\ncounter:1\n")
    #expect(try lines(2, "values/soil_moisture_here=ramp:0.5:2:0.25").hasSuffix("soil_moisture_here:0.75\n"))
    #expect(try lines(1, "values/door=constant:open") == "door:open\n")
    #expect(try lines(1, "values/light=random_walk:0:255:9").hasPrefix("light:"))
    #expect(throws: PeripheralError.self) { try lines(1, "values/a=replay:x.csv") }
    #expect(throws: PeripheralError.self) { try lines(1, "temperature=echo") }
    #expect {
      try lines(1, "values/a=sine")
    } throws: {
      "\($0)".hasPrefix("values/a: \"sine\" is not a generator") && "\($0)".contains("or echo")
    }
  }

  @Test func writtenValueIsSentBack() throws {
    var generator = try Generator("values/servo=echo", of: .microbit, seed: 1)
    let sent = Property.microbitUARTSent.characteristic
    generator.received(Array("other:1\nservo:".utf8), by: sent)
    generator.received(Array("90\nservo:45\nservo:4".utf8), by: sent)
    generator.received(Array("servo:0\n".utf8), by: .microbit(0x1B25))
    #expect(String(decoding: generator.next().packets.joined(), as: UTF8.self) == "servo:90\nservo:45\n")
    #expect(generator.next().packets.isEmpty && generator.next().wait == .milliseconds(50))
  }

  @Test func rampRepeats() throws {
    #expect(try Self.bytes(5, "ramp:1:3:1") == [[1], [2], [3], [1], [2]])
    #expect(try Self.bytes(4, "ramp:30:10:-10") == [[30], [20], [10], [30]])
    // Whole numbers are rounded; the last step does not exceed the end.
    #expect(try Self.bytes(5, "ramp:0:2.2:0.6") == [[0], [1], [1], [2], [0]])
  }

  @Test func rampOfScaledNumbers() throws {
    let codec = try Codec(.scalar(Codec.Scalar(.int16, scale: 0.01)))
    #expect(
      try Self.bytes(3, "ramp:-0.5:0.5:0.5", .made(codec: codec)) == [[0xCE, 0xFF], [0, 0], [50, 0]])
  }

  @Test func numbersAsTextHaveTwoDecimals() throws {
    let property = Property.made(codec: try Codec(.scalar(Codec.Scalar(.decimal))))
    func texts(_ text: String) throws -> [String] {
      try Self.bytes(4, text, property).map { String(decoding: $0, as: UTF8.self) }
    }
    #expect(try texts("ramp:20:20.6:0.1") == ["20", "20.1", "20.2", "20.3"])
    #expect(try texts("random_walk:-5:5:0.7").allSatisfy { $0.count <= 5 })
    #expect(try texts("constant:21.125")[0] == "21.125")
    #expect(Self.reason("ramp:0:1e16:1e10", property)?.contains("is outside") == true)
  }

  @Test func bitsAreGenerated() throws {
    let level = try Codec(.scalar(Codec.Scalar(.uint8, bits: 1..<8)))
    #expect(try Self.bytes(3, "ramp:1:3:1", .made(codec: level)) == [[2], [4], [6]])
    #expect(Self.reason("ramp:0:128:1", .made(codec: level))?.contains("128 is outside 0…127") == true)
    let flag = try Codec(.scalar(Codec.Scalar(.bool, bits: 3..<4)))
    #expect(try Self.bytes(1, "constant:true", .made(codec: flag)) == [[8]])
  }

  @Test func randomWalkVariesWithinItsLimitsAndIsRepeatable() throws {
    let values = try Self.bytes(1000, "random_walk:10:20:3").map { Int($0[0]) }
    #expect(values.allSatisfy { (10...20).contains($0) })
    #expect(Set(values).count > 5)
    #expect(zip(values, values.dropFirst()).allSatisfy { abs($0 - $1) <= 4 })
    let again = try Self.bytes(1000, "random_walk:10:20:3").map { Int($0[0]) }
    #expect(again == values)
  }

  @Test(arguments: [
    ("sine:1:2", "is not a generator: use constant:VALUE"), ("", "is not a generator"),
    ("constant:", "is not a whole number"), ("constant:256", "256 is outside 0…255"),
    ("constant:1@0", "the interval is 1 to"), ("ramp:1:2", "is not FROM:TO:STEP"),
    ("ramp:1:2:x", "is not FROM:TO:STEP"), ("ramp:1:nan:1", "is not FROM:TO:STEP"),
    ("ramp:1:2:0", "no step of 0.0 leads"), ("ramp:1:2:-1", "no step of -1.0 leads"),
    ("ramp:1:1:1", "no step"), ("ramp:0:300:1", "300 is outside"), ("random_walk:-1:3:1", "-1 is outside"),
    ("replay:/nonexistent.csv", "/nonexistent.csv: No such file"),
  ])
  func invalidGeneratorIsRejectedWithReason(_ text: String, _ part: String) {
    let reason = Self.reason(text)
    #expect(reason?.contains(part) == true, "\(reason ?? "none")")
  }

  @Test func rampOfRecordIsRejected() {
    #expect(
      Self.reason("ramp:1:2:1", .microbitAccelerometer)
        == "accelerometer is not a number: use constant or replay")
    #expect(Self.reason("ramp:0:1:1", .microbitButtonA)?.contains("use constant or replay") == true)
  }

  // MARK: Replay

  /// The header of `watch --csv` without its column `unit`, which is not used.
  private static let header = "time,device,property,value\n"

  private static func replay(_ text: String, _ property: Property = .made()) throws -> Generator {
    let folder = try TemporaryFolder()
    try folder.write(text, to: "r.csv")
    return try Generator("replay:\(folder.path)/r.csv", for: property)
  }

  private static func replayReason(_ text: String) throws -> String {
    let folder = try TemporaryFolder()
    try folder.write(text, to: "r.csv")
    let reason = reason("replay:\(folder.path)/r.csv") ?? "none"
    return String(reason.dropFirst(folder.path.count + 1))
  }

  @Test func furtherColumnsAreIgnored() throws {
    var generator = try Self.replay(
      "time,device,property,value,unit\n2026-11-22T10:00:00.000Z,kitchen,\(Property.made().name),7,%\n")
    #expect(generator.next().packets == [[7]])
  }

  @Test func randomWalkCanStartAtItsUpperLimit() throws {
    #expect(try Self.bytes(100, "random_walk:20:10:-3").allSatisfy { (10...20).contains($0[0]) })
  }

  @Test func replayHasIntervalsOfRecordingAndRepeats() throws {
    var generator = try Self.replay(
      Self.header + """
        2026-11-22T10:30:15.000Z,kitchen,level,1
        2026-11-22T10:30:15.100Z,kitchen,other,"{""x"":1}"
        2026-11-22T10:30:15.250Z,kitchen,level,2\r
        2026-11-22T10:31:15.250Z,kitchen,"level","3"
        """)
    let expected: [(UInt8, Duration)] = [
      (1, .milliseconds(250)), (2, .seconds(60)), (3, .seconds(60)), (1, .milliseconds(250)),
    ]
    for (byte, wait) in expected {
      let next = generator.next()
      #expect(next.packets == [[byte]])
      #expect(abs((next.wait - wait) / .seconds(1)) < 0.000_1)
    }
  }

  @Test func replayOfWholeSeconds() throws {
    var generator = try Self.replay(
      Self.header + "2026-11-22T10:30:15Z,a,level,1\n2026-11-22T10:30:17Z,a,level,2\n")
    #expect(generator.next().wait == .seconds(2))
  }

  @Test func replayOfRecords() throws {
    var generator = try Self.replay(
      Self.header + #"2026-11-22T10:30:15.000Z,a,accelerometer,"{""x"":1,""y"":0,""z"":0}""# + "\n",
      .microbitAccelerometer)
    let next = generator.next()
    #expect(next.packets == [[1, 0, 0, 0, 0, 0]])
    #expect(next.wait == .seconds(1))
  }

  private static let invalidFiles: [(String, String)] = [
    ("", "r.csv:1: the first line is not time,device,property,value"),
    ("time,value\n", "r.csv:1: the first line is not time,device,property,value"),
    (header, "r.csv:1: there is no value of level"),
    (header + "2026-11-22T10:30:15.000Z,a,level\n", "r.csv:2: 3 columns instead of 4"),
    (
      header + "\nyesterday,a,level,1\n",
      "r.csv:3: \"yesterday\" is not a time such as 2026-11-22T10:30:15.000Z"
    ),
    (
      header + "2026-13-22T10:30:15Z,a,level,1\n",
      "r.csv:2: \"2026-13-22T10:30:15Z\" is not a time such as 2026-11-22T10:30:15.000Z"
    ),
    (
      header + "2026-11-22T10:30:15Z,a,level,x\n",
      "r.csv:2: level: \"x\" is not a whole number in plain digits"
    ),
    (
      header + "2026-11-22T10:30:15Z,a,level,1\n2026-11-22T10:30:15Z,b,level,1\n",
      "r.csv:3: values of \"b\" besides \"a\": keep those of one device"
    ),
    (
      header + "2026-11-22T10:30:15Z,a,level,1\n2026-11-22T10:30:14Z,a,level,1\n",
      "r.csv:3: the time is before that of the line above"
    ),
    (header + "2026-11-22T10:30:15Z,a,level,\"1\n", "r.csv:2: the quotation mark is not closed"),
  ]

  @Test(arguments: invalidFiles)
  func invalidReplayFileIsReported(_ text: String, _ reason: String) throws {
    #expect(try Self.replayReason(text) == reason)
  }
}
