import GATT
import Testing

@testable import Bridge

@Suite struct RequestTimeoutTests {
  @Test func aCommandIsAwaitedUntilItsValueHasSettled() {
    let property = Property(
      name: "level", service: BluetoothUUID(short: 0x2220), characteristic: BluetoothUUID(short: 0x2221),
      access: [.read, .write], settle: .seconds(60), codec: .uint8)
    #expect(SetProperty.replyTimeout(10, property) > .seconds(10 + 60))
  }
}
