import Testing

@testable import Configuration

@Suite struct AreaNameTests {
  @Test(arguments: ["Living room", "living-room", "LIVING_ROOM", " living  room "])
  func areaNamesIgnoreCaseAndSeparators(name: String) {
    #expect(AreaName(name)?.description == "living-room")
    #expect(AreaName("Ku\u{308}che 2") == AreaName("k\u{FC}che/2"))
    #expect(AreaName("Küche")?.description == "kueche" && AreaName("\u{6D6}\0\u{6D6}") == nil)
    #expect(AreaName("K\u{FC}che 2") == AreaName("k\u{FC}che/2"))
  }
}
