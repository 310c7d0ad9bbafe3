import Testing

@testable import GATT

@Suite struct PropertyTests {
  private static func property(
    _ name: String = "x", access: Property.Access = .read, poll: Duration? = nil,
    report: Property.Report? = nil,
    homeAssistant: [HomeAssistantEntity] = []
  ) -> Property {
    Property(
      name: name, service: BluetoothUUID(short: 1), characteristic: BluetoothUUID(short: 2), access: access,
      codec: .int8, unit: "°C", poll: poll, report: report, homeAssistant: homeAssistant)
  }

  @Test func differentPropertiesAreNotEqual() {
    let property = Self.property()
    #expect(property == Self.property())
    for other in [
      Self.property("y"), Self.property(access: .notify), Self.property(poll: .seconds(1)),
      Self.property(report: Property.Report(change: 1)), property.adjusted(offset: 1, unit: nil, report: nil),
      property.adjusted(offset: nil, unit: "K", report: nil),
      Property(name: "x", source: Property.Source(.radio), codec: .int8, unit: "°C"),
    ] {
      #expect(property != other)
    }
    // Each of them is compared: one that is added is to be compared too.
    #expect(Mirror(reflecting: property).children.count == 23)
  }

  @Test func anAdjustedPropertyKeepsTheRest() {
    let property = Self.property(poll: .seconds(5), report: Property.Report(change: 2))
    let adjusted = property.adjusted(offset: -1.5, unit: nil, report: nil)
    #expect(adjusted.offset == -1.5 && adjusted.unit == "°C" && adjusted.report == property.report)
    #expect(adjusted.adjusted(offset: nil, unit: nil, report: nil) == property)
  }
}
