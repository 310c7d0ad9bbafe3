import Testing

@testable import Configuration

@Suite struct AreaNameTests {
  @Test(arguments: ["Living room", "living-room", "LIVING_ROOM", " living  room "])
  func areaNamesIgnoreCaseAndSeparators(name: String) {
    #expect(AreaName(name)?.description == "living-room")
    #expect(AreaName("Ku\u{308}che 2") == AreaName("k\u{FC}che/2"))
    // An accent without a letter is no part of the "-" before it.
    let accents = AreaName("\u{6D6}\0\u{6D6}")
    #expect(accents.flatMap { AreaName($0.description) } == accents)
    #expect(AreaName("K\u{FC}che 2") == AreaName("k\u{FC}che/2"))
  }
}
