import DBus
import GATT
import Peripherals
import Testing

@testable import BlueZSimulator

/// The micro:bit's services beside its temperature: what is served, and what the firmware makes of reads and writes.
@Suite struct MicroBitServiceTests {

  private static let buttonA = LinkTests.device + "/service001b/char001c"
  private static let buttonB = LinkTests.device + "/service001b/char001f"
  private static let acceleration = LinkTests.device + "/service0022/char0023"
  private static let accelerationPeriod = LinkTests.device + "/service0022/char0026"
  private static let rows = LinkTests.device + "/service0028/char0029"
  private static let text = LinkTests.device + "/service0028/char002b"
  private static let delay = LinkTests.device + "/service0028/char002d"

  /// A micro:bit with all services, and a link to it.
  private static func linked() -> Fixture {
    LinkTests.linked { options in
      options.devices = 1
      options.services = MicroBitService.allCases
    }
  }

  private static func value(_ path: String, _ bytes: String) -> String {
    "!\t\(path)\tPropertiesChanged\torg.bluez.GattCharacteristic1\t{Value=ay:\(bytes)}\t"
  }

  private func find(_ uuid: String, _ fixture: Fixture) throws -> GATTDatabase.Characteristic {
    let uuid = try #require(BluetoothUUID("e95d\(uuid)-251d-470a-a062-fa1922dfa9a8"))
    return try #require(fixture.model.peripherals[0].database.characteristic(uuid))
  }

  /// The flags and descriptors are those that a real bluetoothd showed of Tests/RealBlueZ's micro:bits; the handles
  /// follow those of the recordings.
  @Test func requestedServicesAreServed() {
    let fixture = LinkTests.discovered { options in
      options.devices = 1
      options.services = MicroBitService.allCases
    }
    fixture.call("A", LinkTests.device, .connect)
    fixture.advance(by: .seconds(1))
    let lines = fixture.takeLines()
    let flags = lines.compactMap { line -> String? in
      guard let flags = line.firstMatch(of: /Flags=as:([^;]*)/)?.1 else { return nil }
      let path = line.split(separator: "\t")[1].split(separator: "/").suffix(2).joined(separator: "/")
      return "\(path) \(flags)"
    }
    #expect(
      flags.dropFirst(6) == [
        "service0015/char0016 read,notify", "service0015/char0019 read,write",
        "service001b/char001c read,notify", "service001b/char001f read,notify",
        "service0022/char0023 read,notify", "service0022/char0026 read,write",
        "service0028/char0029 read,write", "service0028/char002b write", "service0028/char002d read,write",
        "service002f/char0030 read,notify", "service002f/char0033 read,notify",
        "service002f/char0036 read,write",
        "service002f/char0038 write,notify", "service003b/char003c read,write",
        "service003b/char003e read,write",
        "service003b/char0040 write", "service003b/char0042 read,write,notify",
        "service0045/char0046 indicate",
        "service0045/char0049 write-without-response,write", "service004b/char004c read,notify",
        "service004b/char004f write-without-response,write", "service004b/char0051 write",
        "service004b/char0053 read,notify", "service0056/char0057 write-without-response,write,notify",
      ])
    let descriptors = lines.filter { $0.contains("/desc") }.map {
      String($0.split(separator: "\t")[1].suffix(8))
    }
    #expect(
      descriptors == [
        "desc0009", "desc0018", "desc001e", "desc0021", "desc0025", "desc0032", "desc0035", "desc003a",
        "desc0044",
        "desc0048", "desc004e", "desc0055", "desc0059",
      ])
    let uuids = lines.last.map { $0.matches(of: /[0-9a-f]{8}-/).map { String($0.output.prefix(8)) } }
    #expect(
      uuids == [
        "00001800", "00001801", "0000180a", "6e400001", "e95d0001", "e95d0753", "e95d127b", "e95d6100",
        "e95d93af",
        "e95d9882",
        "e95dd91d", "e95df2d8",
      ])
  }

  @Test func theTemperatureMayBeAbsent() {
    let fixture = LinkTests.linked { options in
      options.devices = 1
      options.services = [.buttons]
    }
    fixture.call("A", LinkTests.device + "/service0015/char0016", .readValue, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tReadValue\tok\tay:00")
    fixture.call("A", LinkTests.device + "/service0015/char0016", .startNotify)
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(10))
    #expect(fixture.takeLines() == [])
  }

  // MARK: Buttons

  @Test func buttonNotifiesTheValueThatWasSet() throws {
    let fixture = Self.linked()
    fixture.call("A", Self.buttonA, .startNotify)
    fixture.call("A", Self.buttonB, .acquireNotify, [.noOptions])
    _ = fixture.takeLines()
    for value in [1, 2, 0] as [UInt8] {
      for button in ["da90", "da91"] {
        let button = try find(button, fixture)
        #expect(fixture.set(button, to: [value]))
      }
    }
    #expect(fixture.takeLines() == ["01", "02", "00"].map { Self.value(Self.buttonA, $0) })
    #expect(fixture.takePackets() == [[1], [2], [0]])
    #expect(fixture.model.peripherals[0].radio.sent == 6)
    fixture.call("A", Self.buttonA, .writeValue, [.bytes([1]), .properties(["type": .string("request")])])
    #expect(fixture.takeLines() == ["<\tA\tWriteValue\torg.bluez.Error.NotPermitted\tWrite not permitted"])
  }

  @Test func nothingIsNotifiedWithoutSubscriptionLinkOrRadio() throws {
    let fixture = Self.linked()
    let button = try find("da90", fixture)
    func press(_ value: UInt8) {
      #expect(fixture.set(button, to: [value]))
    }
    press(1)
    fixture.call("A", Self.buttonA, .startNotify)
    fixture.model.peripherals[0].radio.isSilent = true
    _ = fixture.takeLines()
    press(2)
    fixture.model.peripherals[0].radio.isSilent = false
    fixture.give { $0.hangUp($0.key(ofPeripheral: 0)) }
    _ = fixture.takeLines()
    press(0)
    #expect(fixture.takeLines() == [])
    #expect(fixture.model.peripherals[0].radio.sent == 0)
    #expect(fixture.model.peripherals[0].values.value(of: button, at: fixture.now) == [0])
  }

  // MARK: Accelerometer

  @Test(
    arguments: [
      (0, 0), (1, 2), (2, 2), (3, 5), (5, 5), (6, 10), (10, 10), (11, 20), (20, 20), (21, 40), (40, 40),
      (41, 100), (100, 100), (101, 1000), (65535, 1000),
    ] as [(UInt16, UInt16)])
  func thePeriodBecomesOneOfTheChip(written: UInt16, held: UInt16) {
    var accelerometer = Accelerometer(at: .now)
    #expect(accelerometer.period == 20)
    accelerometer.setPeriod(written, at: .now)
    #expect(accelerometer.period == held)
  }

  @Test(arguments: [[], [1], [1, 2, 3]] as [[UInt8]])
  func aPeriodOfAnotherLengthThanTwoBytesIsRefused(_ bytes: [UInt8]) {
    let fixture = Self.linked()
    fixture.call("A", Self.accelerationPeriod, .writeValue, [.bytes(bytes), .noOptions])
    #expect(
      fixture.takeLines() == ["<\tA\tWriteValue\torg.bluez.Error.InvalidArguments\tInvalid Length"])
    #expect(fixture.model.peripherals[0].values.accelerometer?.period == 20)
    #expect(fixture.model.peripherals[0].writes.isEmpty)
  }

  @Test func aSampleComesOnceInAPeriodAndANewPeriodCountsAtOnce() throws {
    let fixture = Self.linked()
    fixture.call("A", Self.acceleration, .acquireNotify, [.noOptions])
    fixture.advance(by: .seconds(1))
    let samples = fixture.takePackets()
    #expect(samples.count == 50 && Set(samples).count > 1, "no sensor is without noise")
    #expect(samples.allSatisfy { $0[0] <= 8 || $0[0] >= 248 })
    fixture.call("A", Self.accelerationPeriod, .writeValue, [.bytes([50, 0]), .noOptions])
    let data = try find("ca4b", fixture)
    #expect(fixture.set(data, to: [1, 0, 2, 0, 3, 0]))
    fixture.advance(by: .milliseconds(99))
    #expect(fixture.takePackets() == [])
    fixture.advance(by: .milliseconds(901))
    #expect(fixture.takePackets() == Array(repeating: [1, 0, 2, 0, 3, 0], count: 10))
    // From outside, as the program of the micro:bit would.
    let period = try find("fb24", fixture)
    #expect(fixture.set(period, to: [10, 0]))
    fixture.advance(by: .seconds(1))
    #expect(fixture.takePackets().count == 100)
    #expect(!fixture.set(period, to: [1]))
  }

  @Test func temperatureAndAccelerationKeepTheirOwnCadence() {
    let fixture = Self.linked()
    fixture.model.peripherals[0].values.microBit?.fixedTemperature = 20
    fixture.call("A", LinkTests.temperature, .startNotify)
    fixture.call("A", Self.acceleration, .startNotify)
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(10))
    let lines = fixture.takeLines()
    #expect(lines.count { $0 == Self.value(LinkTests.temperature, "14") } == 10)
    #expect(lines.count { $0.hasPrefix("!\t\(Self.acceleration)\t") } == 500)
    #expect(lines.count == 510)
    fixture.call("A", LinkTests.temperature, .stopNotify)
    _ = fixture.takeLines()
    fixture.advance(by: .seconds(1))
    let rest = fixture.takeLines()
    #expect(rest.count == 50 && rest.allSatisfy { $0.hasPrefix("!\t\(Self.acceleration)\t") })
  }

  // MARK: Magnetometer

  @Test func magneticFieldIsNotifiedByItselfAndACalibrationEnds() {
    let fixture = Self.linked()
    let calibration = LinkTests.device + "/service002f/char0038"
    fixture.call("A", LinkTests.device + "/service002f/char0030", .startNotify)
    _ = fixture.takeLines()
    fixture.advance(by: .milliseconds(1050))
    #expect(fixture.takeLines().count == 10)
    fixture.call("A", LinkTests.device + "/service002f/char0030", .stopNotify)
    fixture.call("A", calibration, .startNotify)
    fixture.call("A", calibration, .writeValue, [.bytes([0]), .noOptions])
    fixture.advance(by: .seconds(2))
    _ = fixture.takeLines()
    fixture.call("A", calibration, .writeValue, [.bytes([1]), .noOptions])
    fixture.advance(by: .seconds(10))
    #expect(fixture.takeLines() == ["<\tA\tWriteValue\tok", Self.value(calibration, "02")])
  }

  // MARK: Pins

  @Test func inputPinsAreReadAndNotWritten() throws {
    let fixture = Self.linked()
    let pins = LinkTests.device + "/service003b/char0042"
    fixture.call("A", pins, .startNotify)
    // P0 and P20 are inputs.
    let inputs = LinkTests.device + "/service003b/char003e"
    fixture.call("A", inputs, .writeValue, [.bytes([1, 0, 4, 0]), .noOptions])
    fixture.call("A", pins, .writeValue, [.bytes([0, 1, 1, 1]), .noOptions])
    _ = fixture.takeLines()
    fixture.call("A", pins, .readValue, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tReadValue\tok\tay:00001200")
    #expect(fixture.set(try find("8d00", fixture), to: [18, 200]))
    #expect(fixture.takeLines() == [Self.value(pins, "12c8")])
    fixture.call("A", pins, .readValue, [.noOptions])
    #expect(fixture.takeLines().last == "<\tA\tReadValue\tok\tay:000012c8")
  }

  // MARK: Events

  @Test func eventsAreNotifiedIfTheyAreRequired() throws {
    let fixture = Self.linked()
    let events = LinkTests.device + "/service004b/char004c"
    fixture.call("A", events, .startNotify)
    _ = fixture.takeLines()
    let (button, event) = (try find("da90", fixture), try find("9775", fixture))
    #expect(fixture.set(button, to: [1]))
    #expect(fixture.set(event, to: [27, 0, 11, 0]))
    #expect(fixture.takeLines() == [])
    let filter = LinkTests.device + "/service004b/char0051"
    for wanted in [[1, 0, 1, 0], [27, 0, 0, 0]] as [[UInt8]] {
      fixture.call("A", filter, .writeValue, [.bytes(wanted), .noOptions])
    }
    _ = fixture.takeLines()
    for state in [0, 1] as [UInt8] { #expect(fixture.set(button, to: [state])) }
    #expect(fixture.set(event, to: [27, 0, 11, 0]))
    #expect(fixture.takeLines() == ["01000100", "1b000b00"].map { Self.value(events, $0) })
  }

  // MARK: Introspection

  @Test func objectsAndMethodsAreIntrospected() throws {
    let tree = Self.linked().model.tree
    #expect(tree.introspection(of: "/org")?.contains(#"<node name="bluez"/>"#) == true)
    #expect(tree.introspection(of: "/")?.contains("GetManagedObjects") == true)
    let device = try #require(tree.introspection(of: LinkTests.device))
    #expect(device.contains(#"<method name="Connect"></method>"#))
    #expect(device.contains(#"<property name="UUIDs" type="as" access="read"/>"#))
    #expect(
      tree.introspection(of: Self.rows)?.contains(
        #"<method name="WriteValue"><arg type="ay" direction="in"/><arg type="a{sv}" direction="in"/></method>"#
      )
        == true)
    #expect(tree.introspection(of: "/nothing") == nil)
  }

  // MARK: LED

  @Test func shortWritesClearTheLowerRows() {
    let fixture = Self.linked()
    for bytes in [[0xFF, 1, 2, 3, 4], [], [7, 8]] as [[UInt8]] {
      fixture.call("A", Self.rows, .writeValue, [.bytes(bytes), .noOptions])
    }
    fixture.call("A", Self.rows, .writeValue, [.bytes([0, 0, 0, 0, 0, 0]), .noOptions])
    fixture.call("A", Self.rows, .readValue, [.noOptions])
    #expect(
      fixture.takeLines() == [
        "<\tA\tWriteValue\tok", "<\tA\tWriteValue\tok", "<\tA\tWriteValue\tok",
        "<\tA\tWriteValue\torg.bluez.Error.InvalidArguments\tInvalid Length",
        Self.value(Self.rows, "0708000000"), "<\tA\tReadValue\tok\tay:0708000000",
      ])
  }

  @Test func textsAreNotedAndNotRead() throws {
    let fixture = Self.linked()
    let texts = ["", "Hello", String(repeating: "x", count: 20)].map { Array($0.utf8) }
    for text in texts { fixture.call("A", Self.text, .writeValue, [.bytes(text), .noOptions]) }
    let long = [UInt8](repeating: 1, count: 21)
    fixture.call("A", Self.text, .writeValue, [.bytes(long), .noOptions])
    fixture.call("A", Self.text, .readValue, [.noOptions])
    #expect(
      fixture.takeLines().suffix(2) == [
        "<\tA\tWriteValue\torg.bluez.Error.InvalidArguments\tInvalid Length",
        "<\tA\tReadValue\torg.bluez.Error.NotPermitted\tRead not permitted",
      ])
    let writes = fixture.model.peripherals[0].writes[try find("93ee", fixture).handle]
    #expect(writes?.last == texts)
    #expect(writes?.count == 3)
  }

  @Test func aResetForgetsWhatWasWritten() throws {
    let fixture = Self.linked()
    fixture.call("A", Self.rows, .writeValue, [.bytes([1, 2, 3, 4, 5]), .noOptions])
    fixture.call("A", Self.delay, .writeValue, [.bytes([60, 0]), .noOptions])
    fixture.call("A", Self.accelerationPeriod, .writeValue, [.bytes([100, 0]), .noOptions])
    fixture.give { $0.reset(0) }
    let peripheral = fixture.model.peripherals[0]
    let held = try ["7b77", "0d2d", "fb24"].map {
      peripheral.values.value(of: try find($0, fixture), at: fixture.now)
    }
    #expect(held == [[0, 0, 0, 0, 0], [120, 0], [20, 0]])
    // What was written is still known.
    #expect(peripheral.writes.values.map(\.count) == [1, 1, 1])
  }

  @Test func theLastThousandWritesAreKept() {
    var writes = Writes()
    for number in 0..<1003 { writes.append([UInt8(number % 256), UInt8(number / 256)]) }
    #expect(writes.count == 1003)
    #expect(writes.last.count == 1000)
    #expect(writes.last.first == [3, 0])
  }
}
