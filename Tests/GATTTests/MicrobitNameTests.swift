import GATT
import Testing

@Suite struct MicrobitNameTests {
  @Test func letters() {
    #expect(MicrobitName(serial: 0).description == "zuzuz")
    #expect(MicrobitName(serial: 1).description == "zuzuv")
    #expect(MicrobitName(serial: 5).description == "zuzoz")
    #expect(MicrobitName(serial: 7).description == "zuzog")
    #expect(MicrobitName(serial: 3124).description == "tatat")
    #expect(MicrobitName(serial: 3125).description == "zuzuz")
  }

  @Test func eachName() {
    var names: Set<String> = []
    for serial in 0..<MicrobitName.count {
      let name = MicrobitName(serial: serial)
      #expect(MicrobitName(name.description) == name)
      names.insert(name.description)
    }
    #expect(names.count == 3125)
  }

  @Test(arguments: ["", "zuzu", "zuzuzu", "uzuzu", "temps", "ZUZUZ"]) func none(_ text: String) {
    #expect(MicrobitName(text) == nil)
  }
}
