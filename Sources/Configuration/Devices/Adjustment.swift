import GATT

/// What becomes of the values of a property, or of a value that a program names itself, before they are published.
package struct Adjustment: ConfigurationSection, Equatable {
  /// Added to each number.
  package var offset: Double?
  /// What the unit is called; nothing is converted.
  package var unit: String?
  var reportKeys: ReportKeys?

  package init() {}

  package static let offsets = -1e9...1e9

  package static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("offset", \.offset, .optional(.number(offsets))),
    ConfigurationKey("unit", \.unit, .optional(.text(longest: 32))),
    ConfigurationKey("report", \.reportKeys, .optional(.section)),
  ]

  /// The report; nil: as the profile has it.
  package var report: Property.Report? { reportKeys?.report }

  /// Why the property cannot be adjusted.
  func problems(with property: Property, at path: ConfigurationPath) -> [ConfigurationError] {
    var errors: [ConfigurationError] = []
    if offset != nil, let problem = property.offsetProblem {
      errors.append(path.key("offset").error("\(property.name) \(problem): it has no offset"))
    }
    if report != nil, property.kind == .event {
      errors.append(path.key("report").error("\(property.name) is an event: each is published"))
    }
    return errors
  }
}

extension Property {
  /// Why nothing is added to the property's values; nil: it can be. What a command sets must be what is read back and
  /// what is published, so that a written value has no offset.
  fileprivate var offsetProblem: String? {
    if isWritable { return "can be set" }
    return kind == .state && codec.content.isNumber ? nil : "is no single number"
  }

  /// Whether something can be added to the property's values.
  package var takesOffset: Bool { offsetProblem == nil }
}

extension Profile {
  /// The profile with adjusted properties, as far as they can be.
  package func adjusted(by adjustments: [Named<Adjustment>]) -> Profile {
    guard !adjustments.isEmpty else { return self }
    return with(
      properties.map { property in
        guard let adjustment = adjustments.last(where: { $0.name == property.name })?.value else {
          return property
        }
        return property.adjusted(
          offset: property.takesOffset ? adjustment.offset : nil, unit: adjustment.unit,
          report: adjustment.report)
      })
  }
}
