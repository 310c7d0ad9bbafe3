import GATT
import Testing

@Suite struct BluetoothUUIDTests {
  @Test(arguments: [
    "e95d9250-251d-470a-a062-fa1922dfa9a8", "E95D9250-251D-470A-A062-FA1922DFA9A8",
  ])
  func parsesFullUUIDInAnyCase(text: String) {
    #expect(BluetoothUUID(text) == .microbit(0x9250))
    #expect(BluetoothUUID(text)?.description == "e95d9250-251d-470a-a062-fa1922dfa9a8")
  }

  @Test(arguments: ["180a", "180A", "0000180a", "0000180a-0000-1000-8000-00805f9b34fb"])
  func parsesAssignedNumbers(text: String) {
    #expect(BluetoothUUID(text) == DeviceInformation.service)
  }

  @Test func writesLeadingZeros() {
    #expect(BluetoothUUID(high: 0, low: 1).description == "00000000-0000-0000-0000-000000000001")
    #expect(BluetoothUUID(short: 0xFFFF_FFFF).description == "ffffffff-0000-1000-8000-00805f9b34fb")
  }

  @Test(arguments: [
    "", "1", "180", "180g", "+180", "-180", "180a ", "e95d9250251d470aa062fa1922dfa9a8",
    "e95d9250-251d-470a-a062-fa1922dfa9a", "e95d9250-251d-470a-a062-fa1922dfa9a8a",
    "e95d925-0251d-470a-a062-fa1922dfa9a8", "e95d9250-251d-470a-a062fa1922dfa9a8--",
    "------------------------------------", "g95d9250-251d-470a-a062-fa1922dfa9a8", "１８０ａ",
  ])
  func refusesInvalidUUIDs(text: String) {
    #expect(BluetoothUUID(text) == nil)
  }
}

extension BluetoothUUIDTests {
  @Test func digitsMayFollow0x() {
    #expect(BluetoothUUID("0x180f") == BluetoothUUID(short: 0x180F))
    #expect(BluetoothUUID("0x") == nil)
    #expect(BluetoothUUID("0x0x180f") == nil)
  }

  @Test(arguments: ["180a", "0001180a", "e95d9250-251d-470a-a062-fa1922dfa9a8"])
  func shortFormIsThatOfAnAssignedNumber(text: String) throws {
    let uuid = try #require(BluetoothUUID(text))
    #expect(uuid.short == (text == "180a" ? text : uuid.description))
  }
}

@Suite struct BluetoothAddressTests {
  @Test(arguments: ["C5:A1:B2:C3:D4:E5", "c5:a1:b2:c3:d4:e5", "c5:A1:b2:C3:d4:E5"])
  func parsesAnyCaseAndPrintsUppercase(text: String) throws {
    let address = try #require(BluetoothAddress(text))
    #expect(address.description == "C5:A1:B2:C3:D4:E5")
    #expect(address.compact == "c5a1b2c3d4e5")
    #expect(address.value == 0xC5A1_B2C3_D4E5)
  }

  @Test func keepsLeadingZeros() {
    let address = BluetoothAddress(truncating: 0xFFFF_0001_0203_0405)
    #expect(address.description == "00:01:02:03:04:05")
    #expect(BluetoothAddress("00:01:02:03:04:05") == address)
  }

  @Test(arguments: [
    "", ":::::", "C5:A1:B2:C3:D4", "C5:A1:B2:C3:D4:E5:", "C5:A1:B2:C3:D4:E5:00", "C5-A1-B2-C3-D4-E5",
    "C5A1B2C3D4E5", "C5:A1:B2:C3:D4:G5", "C5:A1:B2:C3:D4:+5", "C5:A1:B2:C3:D:4E5", " C5:A1:B2:C3:D4:E5",
  ])
  func refusesInvalidAddresses(text: String) {
    #expect(BluetoothAddress(text) == nil)
  }
}
