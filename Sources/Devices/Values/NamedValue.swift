import Configuration
import GATT

/// A value that the program of a device names itself.
package struct NamedValue: Sendable, Equatable {
  /// The name in topics, without ``prefix``.
  package let key: ValueKey
  /// The name as the program writes it.
  package let written: String
  /// The value as a property, for the front ends: its name is `values/moisture`.
  package let property: Property
  package let isNumber: Bool
  /// Whether each value so far was true or false.
  package let isBool: Bool
  /// Whether the value was received twice, or the configuration describes it: its name is no mistake.
  package let isConfirmed: Bool

  /// What its values are, in `info` and for the page.
  package var type: String { isNumber ? "number" : isBool ? "boolean" : "text" }

  /// What stands before the name in topics.
  package static let prefix = "values/"
  /// The value's name as a property: `values/moisture`.
  package static func name(_ key: ValueKey) -> String { "\(prefix)\(key)" }
  /// The name in topics, without ``prefix``; nil if `name` is not that of a value.
  package static func key(of name: String) -> ValueKey? {
    name.hasPrefix(prefix) ? ValueKey(name.dropFirst(prefix.count)) : nil
  }
  private static let report = Property.Report(minInterval: .seconds(1))

  init(_ key: ValueKey, _ entry: ValueTable.Entry, _ described: ValueDescription?, of line: Property) {
    let meaning = ValueMeaning(key, entry.written, unit: entry.unit)
    self.key = key
    written = entry.written
    isNumber = entry.isNumber || described?.isNumber == true
    isBool = entry.isBool
    isConfirmed = entry.isConfirmed || described != nil
    let unit = described?.adjustment.unit ?? (isNumber ? meaning.unit : nil)
    let deviceClass =
      described?.deviceClass ?? (isNumber && unit == meaning.unit ? meaning.deviceClass : nil)
    let entity = HomeAssistantEntity(
      .sensor(isNumber ? DeviceClasses.stateClass(of: deviceClass) : nil),
      name: described?.name ?? meaning.name, deviceClass: deviceClass, unit: unit)
    property = Property(
      name: Self.name(key), service: line.service, characteristic: line.characteristic, access: .notify,
      codec: .utf8, unit: unit, offset: described?.adjustment.offset,
      report: described?.adjustment.report ?? Self.report, homeAssistant: [entity])
  }
}
