import Configuration
import GATT
import JSON

/// A line that sets a value: `PROPERTY VALUE`.
package struct InputLine: Sendable, Equatable {
  /// The property of the profile.
  package let property: Property
  /// The property's new value.
  package let value: Value

  /// Parses a line; nil if it is empty, or a comment (`# …`).
  package init?(_ line: String, of profile: Profile) throws(PeripheralError) {
    let words = line.split(maxSplits: 1) { $0 == " " || $0 == "\t" }
    guard let name = words.first, !name.hasPrefix("#") else { return nil }
    property = try profile.served(String(name))
    let rest = words.count > 1 ? String(words[1].drop { $0 == " " || $0 == "\t" }) : ""
    guard !rest.isEmpty else {
      throw PeripheralError(
        "\(name): the value is missing (write \(name) and \(property.codec.valueDescription))")
    }
    value = try property.value(text: rest)
  }
}

extension Profile {
  /// The property of this name, if the peripheral determines its value.
  package func served(_ name: String) throws(PeripheralError) -> Property {
    guard let property = property(named: name) else {
      let hint = suggestion(for: name, among: properties.map(\.name))
      throw PeripheralError("the profile \(self.name) has no property \(Excerpt(name)) (\(hint))")
    }
    guard property.isReadable || property.isNotifying else {
      throw PeripheralError("\(name) is written by centrals, and cannot be set here")
    }
    return property
  }
}
