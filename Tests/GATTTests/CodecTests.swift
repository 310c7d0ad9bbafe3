import GATT
import Testing

@Suite struct CodecTests {
  @Test(arguments: [(0, 0x00), (21, 0x15), (127, 0x7F), (-1, 0xFF), (-128, 0x80)])
  func int8IsTwosComplement(value: Int, byte: UInt8) throws {
    #expect(try Codec.int8.decode([byte]) == value)
    #expect(try Codec.int8.encode(value) == [byte])
  }

  @Test(arguments: [
    (0, [0, 0]), (1, [1, 0]), (1000, [0xE8, 0x03]), (0x1234, [0x34, 0x12]), (0xFFFF, [0xFF, 0xFF]),
  ])
  func uint16IsLittleEndian(value: Int, bytes: [UInt8]) throws {
    #expect(try Codec.uint16.decode(bytes) == value)
    #expect(try Codec.uint16.encode(value) == bytes)
  }

  @Test(arguments: [0, 2, 20])
  func int8RefusesOtherLengthsAndKeepsTheBytes(count: Int) {
    let bytes = [UInt8](repeating: 7, count: count)
    #expect(throws: CodecError.length(expected: 1, bytes: bytes)) { try Codec.int8.decode(bytes) }
  }

  @Test(arguments: [0, 1, 3, 512])
  func uint16RefusesOtherLengthsAndKeepsTheBytes(count: Int) {
    let bytes = [UInt8](repeating: 7, count: count)
    #expect(throws: CodecError.length(expected: 2, bytes: bytes)) { try Codec.uint16.decode(bytes) }
  }

  @Test(arguments: [0x10000, -1, Int.max, Int.min])
  func uint16RefusesWhatHasNoBytes(value: Int) {
    #expect(throws: CodecError.range(value: value, allowed: 0...0xFFFF)) { try Codec.uint16.encode(value) }
  }

  @Test(arguments: [128, -129, Int.max, Int.min])
  func int8RefusesWhatHasNoBytes(value: Int) {
    #expect(throws: CodecError.range(value: value, allowed: -128...127)) { try Codec.int8.encode(value) }
  }

  @Test func errorsShowTheBytesUpToALimit() {
    func text(_ expected: Int, _ bytes: [UInt8]) -> String {
      CodecError.length(expected: expected, bytes: bytes).description
    }
    #expect(text(1, []) == "expected 1 byte, got 0")
    #expect(text(2, [0x0A, 0xFF, 0x00]) == "expected 2 bytes, got 3: 0a ff 00")
    let long = text(1, [UInt8](repeating: 0xAB, count: 512))
    #expect(long.hasPrefix("expected 1 byte, got 512: ab ab"))
    #expect(long.hasSuffix("ab …"))
    #expect(long.utf8.count < 100)
    #expect(CodecError.range(value: -1, allowed: 0...65535).description == "-1 is outside 0…65535")
  }
}

@Suite struct MicrobitProfileTests {
  let profile = Profile.microbit

  @Test func hasTheTemperatureAndItsPeriod() throws {
    #expect(profile.properties.map(\.name) == ["temperature", "period"])
    let temperature = try #require(profile.property(named: "temperature"))
    #expect(temperature.characteristic.description == "e95d9250-251d-470a-a062-fa1922dfa9a8")
    #expect(temperature.codec == .int8)
    #expect(temperature.isReadable && temperature.isNotifying && !temperature.isWritable)
    #expect(temperature.unit == "°C")
    let period = try #require(profile.property(named: "period"))
    #expect(period.characteristic.description == "e95d1b25-251d-470a-a062-fa1922dfa9a8")
    #expect(period.codec == .uint16)
    #expect(period.isReadable && !period.isNotifying && period.isWritable)
    #expect(period.range == 20...65535)
    #expect(profile.property(named: "humidity") == nil)
  }

  @Test func knowsWhichValuesCanBeSet() {
    #expect(
      profile.settable(["period": 20, "of another version": -1]) == ["period": 20, "of another version": -1])
    for value in [19, 1, 0, -1, 65536] { #expect(profile.settable(["period": value]) == [:]) }
  }

  @Test func findsAPropertyByItsCharacteristicInItsService() {
    let service = BluetoothUUID.microbitTemperatureService
    #expect(service.description == "e95d6100-251d-470a-a062-fa1922dfa9a8")
    #expect(profile.property(service: service, characteristic: .microbit(0x1B25))?.name == "period")
    #expect(profile.property(service: DeviceInformation.service, characteristic: .microbit(0x1B25)) == nil)
    #expect(profile.services == [service])
    #expect(profile.services.contains(profile.identifyingService))
  }

  /// Names stand in topics as they are.
  @Test func namesAreWordsOfTopics() {
    for property in profile.properties {
      #expect(property.name.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber || $0 == "_") })
      #expect(property.codec.range.contains(property.range.lowerBound))
      #expect(property.codec.range.contains(property.range.upperBound))
    }
    #expect(Set(profile.properties.map(\.name)).count == profile.properties.count)
  }
}

@Suite struct HomeAssistantEntityTests {
  @Test func ofTheMicrobit() {
    #expect(
      Property.microbitTemperature.homeAssistant
        == HomeAssistantEntity(.sensor(.measurement), name: "Temperature", deviceClass: "temperature"))
    #expect(
      Property.microbitPeriod.homeAssistant
        == HomeAssistantEntity(
          .number(.box), name: "Period", deviceClass: "duration", category: .config))
  }

  /// Home Assistant refuses a number without a command topic, and a sensor that is configuration; and these keys
  /// are those of the entities that every device has.
  @Test func areSuchAsHomeAssistantTakes() {
    for property in Profile.microbit.properties {
      guard let entity = property.homeAssistant else { continue }
      switch entity.kind {
      case .number: #expect(property.isWritable)
      case .sensor: #expect(entity.category != .config)
      }
      #expect(!["connectivity", "rssi", "firmware", "model", "reconnect"].contains(property.name))
    }
  }
}
