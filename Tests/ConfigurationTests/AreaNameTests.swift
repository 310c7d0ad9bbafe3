import Testing

@testable import Configuration

@Suite struct AreaNameTests {
  @Test(arguments: ["Living room", "living-room", "LIVING_ROOM", " living  room "])
  func areaNamesIgnoreCaseAndSeparators(name: String) {
    #expect(AreaName(name)?.description == "living-room")
    #expect(AreaName("K\u{FC}che 2") == AreaName("k\u{FC}che/2"))
  }
}
