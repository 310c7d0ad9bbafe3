import GATT
import Testing

@testable import Configuration

@Suite struct DeviceIDTests {
  @Test(arguments: [
    "kitchen", "a", "0", "-", "_", "bridge2", "c5a1b2c3d4e5", String(repeating: "x", count: 64), "온도",
    "температура-1",
    "العربية", "温度", String(repeating: "온", count: 64),
  ])
  func acceptsValidIDs(text: String) throws {
    #expect(try DeviceID(text).description == text)
  }

  @Test(arguments: [
    "", "Kitchen", "a b", "a/b", "a+", "#", "küche", "a\n", "a\0", String(repeating: "x", count: 65),
    "a\u{301}", "Е",
    "🌡", "온/도", "온\u{200D}도", "온\u{202E}", "온 도", String(repeating: "온", count: 65),
  ])
  func refusesInvalidCharactersAndLengths(text: String) {
    #expect(throws: DeviceID.Problem.characters) { try DeviceID(text) }
    #expect(GatewayID(text) == nil)
  }

  @Test func gatewaysHaveIDsInASCII() { #expect(GatewayID("온도") == nil) }

  @Test(arguments: [
    ("Küche", "kueche"), ("Ku\u{308}che", "kueche"), ("Überdruck", "ueberdruck"), ("Đường 1", "duong-1"),
    ("Living  room_2", "living-room-2"), ("온도", "온도"), ("Температура", "температура"), ("العربية", "العربية"),
    ("🌡 Temp", "temp"), ("Straße", "strasse"), ("ŒUVRE", "oeuvre"), ("İzmir", "izmir"), ("Ｌａｂ１", "lab1"),
    ("می\u{200C}خواهم", "میخواهم"),
  ])
  func nameIsConvertedToAnID(name: String, id: String) throws {
    #expect(TopicWord.similar(to: name) == id)
    #expect(AreaName(name)?.description == id)
    #expect(ValueKey(name: name)?.description == id.replacing("-", with: "_"))
    #expect(try DeviceID(id).description == id)
  }

  @Test(arguments: ["🌡", "", "-", "all", String(repeating: "x", count: 65)])
  func nameWithoutAnID(name: String) { #expect(TopicWord.similar(to: name) == nil) }

  /// Topics with many are refused. A character that is left out does not divide them.
  @Test func combiningCharactersInARowAreLimited() {
    let marks = String(repeating: "\u{301}", count: 20)
    let name = "д\(marks)\u{34F}\(marks)"
    #expect(ValueKey(name: name)?.description.unicodeScalars.count == 9)
    #expect(TopicWord.similar(to: name)?.unicodeScalars.count == 9)
    #expect(!TopicWord.isValid("д\(marks)"))
  }

  @Test func lettersOfOtherScriptsHaveAnASCIIForm() {
    #expect(TopicWord.ascii("온도1") == "UC628_UB3C4_1")
    #expect(TopicWord.ascii("soil_1") == "soil_1")
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
