import EventLoop
import GATT
import Testing

@testable import Peripherals

@Suite struct ServedPeripheralTests {
  private static let start = Moment.now

  private static func microBit(_ generators: [Generator] = []) -> ServedPeripheral {
    ServedPeripheral(.microbit, generators: generators, at: start)
  }

  private static func counter() throws -> ServedPeripheral {
    let add = Property(
      name: "add", service: BluetoothUUID(short: 0x1111), characteristic: BluetoothUUID(short: 0x2222),
      kind: .event, access: .write, codec: .uint8)
    return ServedPeripheral(try Profile(name: "counter", properties: [add]), at: start)
  }

  @Test func everyPropertyOfMicroBitHasCharacteristic() throws {
    let served = Self.microBit()
    for property in Profile.microbit.properties {
      let characteristic = try #require(
        served.values.database.characteristic(of: property), "\(property.name)")
      #expect(served.property(of: characteristic.handle) == property)
    }
  }

  /// The gateway knows a service by its characteristics.
  @Test func serviceThatOnlyIdentifiesThePeripheralIsServed() throws {
    let tag = BluetoothUUID(short: 0x1810)
    let profile = try Profile(name: "tag", requires: [tag], properties: try Self.counter().profile.properties)
    let services = ServedPeripheral(profile, at: Self.start).values.database.services
    #expect(services.first { $0.uuid == tag }?.characteristics.count == 1)
  }

  @Test func temperatureIsNotifiedOncePerPeriodToSubscribersOnly() throws {
    var served = Self.microBit()
    let temperature = try #require(served.values.database.characteristic(of: .microbitTemperature))
    #expect(try served.set(.microbitTemperature, to: .integer(21), at: Self.start) == [])
    #expect(served.next == nil)
    served.subscribe(temperature.handle, true, at: Self.start)
    let first = try #require(served.next)
    let notification = PeripheralValues.Notification(handle: temperature.handle, bytes: [21])
    #expect(served.advance(to: first) == [notification])
    #expect(served.next == first + .seconds(1))
    served.subscribe(temperature.handle, false, at: first)
    #expect(served.next == nil)
  }

  @Test func periodWrittenByCentralIsUsed() throws {
    var served = Self.microBit()
    let period = try #require(served.values.database.characteristic(of: .microbitPeriod))
    let temperature = try #require(served.values.database.characteristic(of: .microbitTemperature))
    served.subscribe(temperature.handle, true, at: Self.start)
    let isAccepted = served.values.write([0xF4, 1], to: period, at: Self.start)
    #expect(isAccepted)
    #expect(served.values.value(of: period, at: Self.start) == [0xF4, 1])
    let first = try #require(served.next)
    _ = served.advance(to: first)
    #expect(served.next == first + .milliseconds(500))
    let isShortAccepted = served.values.write([1], to: period, at: Self.start)
    #expect(!isShortAccepted)
  }

  @Test func buttonIsNotifiedAtOnce() throws {
    var served = Self.microBit()
    let button = try #require(served.values.database.characteristic(of: .microbitButtonA))
    served.subscribe(button.handle, true, at: Self.start)
    let notified = try served.set(.microbitButtonA, to: .text("press_start"), at: Self.start)
    #expect(notified == [PeripheralValues.Notification(handle: button.handle, bytes: [1])])
    #expect(served.values.value(of: button, at: Self.start) == [1])
  }

  @Test(arguments: [[], [1, 2], [1, 2, 3, 4]] as [[UInt8]])
  func counterAcceptsOneByteOnly(_ bytes: [UInt8]) throws {
    var served = try Self.counter()
    let add = try #require(served.values.database.characteristic(of: served.profile.properties[0]))
    let isWrongLengthAccepted = served.values.write(bytes, to: add, at: Self.start)
    #expect(!isWrongLengthAccepted)
    let isAccepted = served.values.write([5], to: add, at: Self.start)
    #expect(isAccepted)
    #expect(served.values.value(of: add, at: Self.start) == [5])
  }

  @Test func generatorsSetValuesAtTheirIntervals() throws {
    let generator = try Generator("ramp:1:2:1@100", for: .microbitButtonA.uint8)
    var served = Self.microBit([generator])
    let button = try #require(served.values.database.characteristic(of: .microbitButtonA))
    served.subscribe(button.handle, true, at: Self.start)
    var seen: [UInt8] = []
    for _ in 0..<3 {
      let next = try #require(served.next)
      seen += served.advance(to: next).flatMap(\.bytes)
    }
    #expect(seen == [1, 2, 1])
    #expect(served.next == Self.start + .milliseconds(300))
    // Missed values are not sent later.
    #expect(served.advance(to: Self.start + .seconds(60)).count == 1)
    #expect(served.next == Self.start + .milliseconds(60_100))
  }

  @Test func twoHundredCharacteristics() throws {
    let properties = (0..<200).map { index in
      Property(
        name: "p\(index)", service: BluetoothUUID(short: 0x1234),
        characteristic: BluetoothUUID(short: 0x2A19),
        instance: index, access: [.read, .notify, .write], codec: .uint8)
    }
    var served = ServedPeripheral(try Profile(name: "many", properties: properties), at: Self.start)
    for (index, property) in properties.enumerated() {
      _ = try served.set(property, to: .integer(index), at: Self.start)
    }
    for (index, property) in properties.enumerated() {
      let characteristic = try #require(served.values.database.characteristic(of: property))
      #expect(served.values.value(of: characteristic, at: Self.start) == [UInt8(index)])
    }
  }
}

extension Property {
  /// The same characteristic with plain numbers.
  fileprivate var uint8: Property {
    Property(
      name: name, service: service, characteristic: characteristic, access: access, codec: .uint8)
  }
}
