import Testing

@testable import BlueZ

@Suite struct AdapterSelectionTests {
  private typealias Case = (selection: AdapterSelection, adapters: [String: String], chosen: String)

  private static let cases: [Case] = [
    // The configured name, whatever adapter has it.
    (AdapterSelection("hci0"), ["hci0": "A", "hci1": "B"], "hci0"),
    (AdapterSelection("hci0", address: "A"), ["hci0": "B", "hci1": "A"], "hci0"),
    (AdapterSelection("hci0", address: "A"), [:], "hci0"),
    // None has that name: the one that was used last.
    (AdapterSelection("hci0", address: "A"), ["hci1": "A"], "hci1"),
    (AdapterSelection("hci0", address: "A"), ["hci1": "B", "hci2": "A"], "hci2"),
    (AdapterSelection("hci0", address: "A"), ["hci1": "B"], "hci0"),
    (AdapterSelection("hci0", isDefault: true, address: "A"), ["hci1": "B"], "hci0"),
    // Cheap adapters may all have the same address.
    (AdapterSelection("hci0", address: "A"), ["hci1": "A", "hci2": "A"], "hci0"),
    // Another central's.
    (AdapterSelection("hci0", others: ["hci1"], address: "A"), ["hci1": "A"], "hci0"),
    (AdapterSelection("hci0", others: ["hci1"], address: "A"), ["hci1": "A", "hci2": "A"], "hci2"),
    // None was used before, and nobody has chosen a name.
    (AdapterSelection("hci0", isDefault: true), ["hci1": "A"], "hci1"),
    (AdapterSelection("hci0", isDefault: true), ["hci1": "A", "hci2": "B"], "hci0"),
    (AdapterSelection("hci0"), ["hci1": "A"], "hci0"),
  ]

  @Test(arguments: cases.indices)
  func oneIsChosen(index: Int) {
    let (selection, adapters, chosen) = Self.cases[index]
    #expect(selection.choose(from: adapters) == chosen)
  }

  @Test func theOneInUseIsKeptWhileItIsThere() {
    let selection = AdapterSelection("hci0", address: "A")
    #expect(selection.choose(from: ["hci0": "B", "hci1": "A"], current: "hci1") == "hci1")
    #expect(selection.choose(from: ["hci0": "B", "hci2": "A"], current: "hci1") == "hci0")
    #expect(selection.choose(from: ["hci2": "A"], current: "hci1") == "hci2")
    #expect(selection.choose(from: [:], current: "hci1") == "hci0")
  }
}
