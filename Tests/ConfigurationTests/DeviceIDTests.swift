import GATT
import Testing

@testable import Configuration

@Suite struct DeviceIDTests {
  @Test(arguments: [
    "kitchen", "a", "0", "-", "_", "bridge2", "c5a1b2c3d4e5", String(repeating: "x", count: 64),
  ])
  func acceptsValidIDs(text: String) throws {
    #expect(try DeviceID(text).description == text)
  }

  @Test(arguments: [
    "", "Kitchen", "a b", "a/b", "a+", "#", "küche", "a\n", "a\0", "е", String(repeating: "x", count: 65),
    "a\u{301}",
  ])
  func refusesInvalidCharactersAndLengths(text: String) {
    #expect(throws: DeviceID.Problem.characters) { try DeviceID(text) }
    #expect(GatewayID(text) == nil)
  }

  @Test(arguments: ["bridge", "all", "area"])
  func refusesReservedWords(text: String) {
    #expect(throws: DeviceID.Problem.reserved) { try DeviceID(text) }
  }

  @Test func defaultsToTheAddress() throws {
    let address = try #require(BluetoothAddress("C5:A1:B2:C3:D4:E5"))
    #expect(DeviceID(address).description == "c5a1b2c3d4e5")
  }

  @Test(arguments: [
    ("raspberrypi", "raspberrypi"), ("Living-Room.local", "living-room-local"), ("", "gateway"),
    ("...", "gateway"), ("küche", "k-che"),
    (String(repeating: "x", count: 100), String(repeating: "x", count: 64)),
  ])
  func hostNameIsConvertedToAGatewayID(host: String, id: String) {
    #expect(GatewayID(hostName: host).description == id)
  }

  @Test func thisHostHasAValidID() {
    #expect(GatewayID(GatewayID.ofThisHost.description) != nil)
  }
}
