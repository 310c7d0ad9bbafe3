extension String {
  /// The word of JSON for people: `not_heard` is `not heard`.
  package var spaced: String { String(map { $0 == "_" ? " " : $0 }) }

  /// The name of a property for people: `battery_low` is `Battery low`.
  package var label: String { prefix(1).uppercased() + String(dropFirst()).spaced }
}
