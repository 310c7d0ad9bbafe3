import GATT
import JSON

// What Home Assistant would not take. It refuses one entity, and the rest works; a newer one may take it: so these are
// warnings.

extension Profile {
  /// What is valid but probably a mistake.
  /// - Parameter path: of the profile.
  func warnings(at path: ConfigurationPath) -> [ConfigurationError] {
    properties.flatMap { property in
      property.homeAssistant.indices.compactMap { index in
        property.warning(of: index, at: path.key("properties").key(property.name))
      }
    }
  }
}

extension Property {
  /// What is probably a mistake in one of its entities.
  fileprivate func warning(of index: Int, at path: ConfigurationPath) -> ConfigurationError? {
    let entity = homeAssistant[index]
    let list = path.key("home_assistant")
    let place = homeAssistant.count == 1 ? list : list.index(index)
    for part in entity.parts(of: self) {
      guard let deviceClass = part.deviceClass,
        let problem = DeviceClasses.problem(
          of: deviceClass, part.entity.kind, part.content, unit: part.unit)
      else { continue }
      return switch problem.key {
      case .unit where entity.unit == nil && part.unit == unit && unit != nil: problem.error(at: path)
      case .unit where entity.unit == nil: problem.error(at: place, "device_class")
      case .unit, .deviceClass, .stateClass: problem.error(at: place)
      }
    }
    return nil
  }
}

extension ValueSettings {
  /// What is probably a mistake in the descriptions of values.
  func warnings(at path: ConfigurationPath) -> [ConfigurationError] {
    guard case .on(let named) = self else { return [] }
    return named.compactMap { value in
      let (deviceClass, unit) = (value.value.deviceClass, value.value.adjustment.unit)
      guard let deviceClass,
        let problem = DeviceClasses.problem(
          of: deviceClass, .sensor(DeviceClasses.stateClass(of: deviceClass)), .number(step: nil), unit: unit)
      else { return nil }
      // Without a unit here, it is the one that the program sends.
      return problem.key == .unit && unit == nil ? nil : problem.error(at: path.key(value.name))
    }
  }
}

extension DeviceClasses {
  struct Problem {
    enum Key: String {
      case unit
      case deviceClass = "device_class"
      case stateClass = "state_class"
    }

    let key: Key
    let text: String
    let hint: String?

    init(_ key: Key, _ text: String, hint: String?) { (self.key, self.text, self.hint) = (key, text, hint) }

    func error(at path: ConfigurationPath, _ key: String? = nil) -> ConfigurationError {
      path.key(key ?? self.key.rawValue).error(text, hint: hint)
    }
  }

  /// Why Home Assistant does not take an entity with this class; nil: it does.
  static func problem(
    of name: String, _ kind: HomeAssistantEntity.Kind, _ content: Codec.Content, unit: String?
  ) -> Problem? {
    let isNumber = content.isNumber
    let known: [String]
    var units: [String]?
    switch kind {
    case .sensor where isNumber, .number: (known, units) = (Array(Self.units.keys), Self.units[name])
    case .sensor: known = Array(texts)
    case .binarySensor: known = binarySensors
    case .switch: known = switches
    case .event: known = events
    case .select, .text, .notify, .image:
      return Problem(.deviceClass, "this platform has no device classes", hint: "remove it")
    }
    guard known.contains(name) else {
      if Self.units[name] != nil || texts.contains(name), case .sensor = kind {
        let cause = isNumber ? "text, and this is a number" : "numbers, and this is none"
        return Problem(.deviceClass, "\(name) is for \(cause)", hint: "remove it")
      }
      return Problem(
        .deviceClass, "Home Assistant knows no \(Excerpt(name)) here, unless it is newer than this gateway",
        hint: nearest(to: name, among: known.sorted()).map { "did you mean \($0)?" })
    }
    if case (.event, .words(let words)) = (kind, content), name == "doorbell", !words.contains("ring") {
      return Problem(
        .deviceClass, "Home Assistant 2027.4 refuses a doorbell without the word ring",
        hint: "name the word ring, or remove the class")
    }
    guard let units else { return nil }
    if !units.isEmpty, !units.contains(unit.map(spelling) ?? "") {
      return Problem(
        .unit, unit.map { "\(Excerpt($0)) is no unit of \(name)" } ?? "the unit is missing",
        hint: units == [""] ? "\(name) has no unit" : "\(name) takes \(list(units))")
    }
    guard case .sensor(let stateClass?) = kind, !statistics(of: name).contains(stateClass) else { return nil }
    return Problem(
      .stateClass, "\(name) is no \(stateClass.rawValue)",
      hint: statistics(of: name).first.map { "use \($0.rawValue)" } ?? "remove it")
  }

  /// The statistics of a number of the class, by default `measurement`; nil: none.
  package static func stateClass(of name: String?) -> HomeAssistantEntity.StateClass? {
    let possible = name.map(statistics) ?? [.measurement]
    return possible.contains(.measurement) ? .measurement : possible.first
  }

  /// The statistics that Home Assistant keeps of numbers of the class, of those that a profile can name.
  private static func statistics(of name: String) -> [HomeAssistantEntity.StateClass] {
    if totals.contains(name) { return [.totalIncreasing] }
    if withoutStatistics.contains(name) { return [] }
    return anyStatistics.contains(name) ? HomeAssistantEntity.StateClass.allCases : [.measurement]
  }

  /// The unit with the micro sign, of which Unicode has two.
  private static func spelling(_ unit: String) -> String {
    String(unit.map { $0 == "\u{3BC}" ? "\u{B5}" : $0 })
  }

  /// `°C, °F or K`.
  private static func list(_ units: [String]) -> String {
    let words = units.map { $0.isEmpty ? "none" : $0 }
    return [words.dropLast().joined(separator: ", "), words.last ?? ""].filter { !$0.isEmpty }
      .joined(separator: " or ")
  }
}
