import Testing

@testable import HomeAssistant

@Suite struct DisplayNameTests {
  @Test(arguments: [
    ("Kitchen", "Kitchen"), ("BBC micro:bit [zugev]", "BBC micro:bit [zugev]"), ("Küche 🌡", "Küche 🌡"),
    (" a \t b\n", "a b"), ("a\u{A0}\u{2028}b", "a b"), ("a\u{0}b\u{7F}\u{85}", "ab"),
    ("\u{202E}evil\u{2066}", "evil"), ("\u{FEFF}x\u{FFFF}\u{E000}", "x"), ("{{ x }}", "{{ x }}"),
  ])
  func containsOnlyVisibleCharacters(text: String, name: String) {
    #expect(DisplayName.clean(text) == name)
  }

  @Test(arguments: ["", " ", "\u{200B}\u{1}\n", "\u{E000}"])
  func isNilWithoutVisibleCharacters(text: String) {
    #expect(DisplayName.clean(text) == nil)
  }

  @Test func isCutTo128Characters() {
    #expect(DisplayName.clean(String(repeating: "x", count: 128))?.count == 128)
    #expect(DisplayName.clean(String(repeating: "x", count: 100_000))?.count == 128)
    let words = DisplayName.clean(String(repeating: "x ", count: 1000))
    #expect(words == String(repeating: "x ", count: 63) + "x")
  }

  @Test(arguments: [("x", 128), ("é", 128), ("Щ", 42), ("カ", 42), ("張", 18), ("가", 18)])
  func nameOfADeviceLeavesRoomInEntityIDs(letter: String, count: Int) {
    #expect(DisplayName.clean(String(repeating: letter, count: 200))?.count == 128)
    #expect(DisplayName.ofDevice(String(repeating: letter, count: 200))?.count == count)
  }
}
