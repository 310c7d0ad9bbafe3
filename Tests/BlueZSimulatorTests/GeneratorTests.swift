import DBus
import GATT
import Peripherals
import TestSupport
import Testing

@testable import BlueZSimulator

/// Generated values, and peripherals of profiles.
@Suite struct SimulatedGeneratorTests {
  private static let level = Property(
    name: "level", service: BluetoothUUID(short: 0x180F), characteristic: BluetoothUUID(short: 0x2A19),
    access: [.read, .notify], codec: .uint8)
  private static let add = Property(
    name: "add", service: BluetoothUUID(short: 0x1111), characteristic: BluetoothUUID(short: 0x2222),
    kind: .event, access: .write, codec: .uint8)

  @Test func aPeripheralOfAProfileSendsGeneratedValues() throws {
    var description = PeripheralDescription(
      name: "Battery", profile: try Profile(name: "battery", properties: [Self.level]))
    description.generators = [try Generator("ramp:1:200:1@10", for: Self.level)]
    let fixture = Fixture.linked(to: description)
    let path = Fixture.described + "/service000e/char000f"
    fixture.call("A", path, .startNotify)
    _ = fixture.takeLines()
    fixture.advance(by: .milliseconds(50))
    let values = fixture.takeLines().compactMap { line in
      line.split(separator: ":").last.flatMap { Int($0.prefix(2), radix: 16) }
    }
    #expect(values.count == 5)
    #expect(zip(values, values.dropFirst()).allSatisfy { $1 == $0 + 1 })
  }

  @Test func theTemperatureIsGeneratedAndSentOncePerPeriod() throws {
    let generator = try Generator("constant:37@10", for: .microbitTemperature)
    let fixture = LinkTests.discovered { options in
      options.devices = 1
      options.generators = [generator]
    }
    let values = fixture.model.peripherals[0].values
    let temperature = try #require(values.database.characteristic(of: .microbitTemperature))
    #expect(values.value(of: temperature, at: fixture.now) == [37])
  }

  @Test func aWriteOfAnotherLengthIsRefused() throws {
    let profile = try Profile(name: "counter", properties: [Self.add])
    let fixture = Fixture.linked(to: PeripheralDescription(name: "Counter", profile: profile))
    let path = Fixture.described + "/service000e/char000f"
    let refused = "<\tA\tWriteValue\torg.bluez.Error.InvalidArguments\tInvalid Length"
    for (bytes, answer) in [([1, 2], refused), ([], refused), ([7], "<\tA\tWriteValue\tok")]
      as [([UInt8], String)]
    {
      fixture.call("A", path, .writeValue, [.bytes(bytes), .properties([:])])
      #expect(fixture.takeLines() == [answer])
    }
  }

  private static let wrong: [([String], String)] = [
    (["--generate", "temperature"], "--generate: not PROPERTY=GENERATOR: temperature"),
    (["--generate", "temprature=constant:1"], "did you mean temperature?"),
    (["--generate", "temperature=sine"], "\"sine\" is not a generator"),
    (["--profile", "/nonexistent.json"], "/nonexistent.json: No such file or directory"),
    (["--profile", "counter", "--generate", "add=constant:1"], "add is written by centrals"),
    (["--profile", "countr"], "did you mean counter?"),
    (["--profile", "eddystone"], "eddystone is only heard: describe what it advertises by --peripheral"),
  ]

  @Test(arguments: wrong.indices)
  func invalidCommandLineIsReported(_ index: Int) async throws {
    let (arguments, reason) = Self.wrong[index]
    let bus = try await PrivateBus()
    let child = try ChildProcess(
      try program("microbit-simulator"),
      ["--bus", bus.address, "--profiles-directory", repositoryPath("deploy/profiles")] + arguments)
    #expect(try await child.exitStatus() == 64)
    #expect(child.text.contains(reason), "\(child.text)")
  }
}
