import Testing

@testable import GATT

/// What is added to values, and what else is set of a property.
@Suite struct AdjustedValueTests {
  @Test(arguments: [
    (Value.integer(21), -4.5, Value.number(16.5)), (.integer(21), -4, .integer(17)),
    (.number(0.1), 0.2, .number(0.3)), (.number(21.5), 0.5, .number(22)), (.number(38.1), -2, .number(36.1)),
    (.number(21.3), -21.2, .number(0.1)), (.number(3.5e-8), 1e-9, .number(3.6e-8)),
    (.number(0), 0.5, .number(0.5)),
    (.integer(.max), 1, .number(0x1p63)), (.number(1e300), 1, .number(1e300)),
    (.number(.infinity), 1, .number(.infinity)), (.text("21"), 1, .text("21")),
    (.record([.integer(1)]), 1, .record([.integer(1)])),
  ])
  func offsetIsAddedToNumbers(value: Value, offset: Double, sum: Value) {
    #expect(value.adding(offset) == sum)
  }

  @Test func adjustedPropertyKeepsWhatIsNotSet() throws {
    let property = Property.microbitTemperature
    #expect(property.adjusted(offset: nil, unit: nil, report: nil) == property)
    #expect(property.adjusted(offset: nil, unit: "°C", report: nil) == property)
    let limited = Property.Report(change: 2)
    let warm = property.adjusted(offset: -4.5, unit: nil, report: limited)
    #expect(warm.offset == -4.5 && warm.report == limited && warm.unit == "°C")
    #expect(warm.homeAssistant == property.homeAssistant)
    let renamed = property.adjusted(offset: nil, unit: "K", report: nil)
    #expect(renamed.unit == "K" && renamed.offset == nil)
    // Home Assistant would refuse the unit, or convert the value.
    #expect(
      renamed.homeAssistant.map(\.deviceClass) == [nil] && renamed.homeAssistant[0].name == "Temperature")
  }
}

@Suite struct RoundedValueTests {
  @Test func numbersOfRecordsAndListsAreCompared() {
    let record = Value.record([.integer(1), nil, .number(2.5)])
    #expect(record.isRounded(from: .record([.integer(1), nil, .number(2.4)])))
    #expect(!record.isRounded(from: .record([.number(1), .number(3), .number(2.5)])))
    #expect(Value.list([.integer(510)]).isRounded(from: .list([.integer(505)])))
    // A word and its number are the same.
    #expect(!Value.text("left").isRounded(from: .integer(2)))
  }
}
