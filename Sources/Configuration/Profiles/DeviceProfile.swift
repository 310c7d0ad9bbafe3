import GATT
import JSON

/// Entries of `devices`, and the profiles that they use.
extension Configuration {
  /// The profile of this name: a built-in one, or one of the configuration.
  package func profile(named name: String) -> Profile? {
    name == Profile.microbit.name ? .microbit : profiles.first { $0.name == name }
  }

  /// The profile of an entry, with the properties in use only.
  package func profile(of device: Device) -> Profile {
    let whole = device.profile.flatMap { profile(named: $0) } ?? .microbit
    var names = Set(device.properties ?? whole.defaultProperties)
    names.formUnion(device.desiredValues.map(\.name))
    return whole.limited(to: names)
  }

  /// The values that the properties of an entry's devices are to hold, by property.
  package func desired(of device: Device) -> [String: Value] {
    let profile = profile(of: device)
    var values: [String: Value] = [:]
    for member in device.desiredValues {
      values[member.name] = profile.property(named: member.name)?.codec.value(member.value)
    }
    return values
  }

  /// What an entry names that its profile lacks or cannot do.
  package func problems(of device: Device, at path: ConfigurationPath) -> [ConfigurationError] {
    let names = [Profile.microbit.name] + profiles.map(\.name)
    guard let profile = profile(named: device.profile ?? Profile.microbit.name) else {
      let name = device.profile ?? ""
      return [
        path.key("profile").error(
          "there is no profile \(Excerpt(name))", hint: choice(of: name, among: names))
      ]
    }
    var errors: [ConfigurationError] = []
    func unknown(_ name: String, _ path: ConfigurationPath) {
      let hint = choice(of: name, among: profile.properties.map(\.name))
      errors.append(path.error("the profile \(profile.name) has no property \(Excerpt(name))", hint: hint))
    }
    if let adapter = device.adapter, !bluetooth.adapters.contains(adapter) {
      errors.append(
        path.key("adapter").error(
          "\(adapter) is not an adapter of this gateway",
          hint: "bluetooth.adapters has \(bluetooth.adapters.joined(separator: ", "))"))
    }
    let list = path.key("properties")
    if device.properties?.isEmpty == true {
      errors.append(list.error("must not be empty", hint: "leave the key out instead"))
    }
    for (index, name) in (device.properties ?? []).enumerated() where profile.property(named: name) == nil {
      unknown(name, list.index(index))
    }
    if device.period != nil, device.desired?.contains(where: { $0.name == "period" }) == true {
      errors.append(.periodTwice(at: path))
    }
    for (name, value) in device.desiredValues.map({ ($0.name, $0.value) }) {
      let isShort = device.desired?.contains { $0.name == name } != true
      let place = isShort ? path.key(name) : path.key("desired").key(name)
      guard let property = profile.property(named: name) else {
        unknown(name, isShort ? path.name(name) : path.key("desired").name(name))
        continue
      }
      if let problem = property.problem(withDesired: value) { errors.append(place.error(problem)) }
    }
    return errors
  }
}

extension ConfigurationError {
  /// `period` is short for `desired.period`.
  package static func periodTwice(at path: ConfigurationPath) -> ConfigurationError {
    path.key("period").error("period and desired.period must not be combined", hint: "give one of them")
  }

  /// Only a device that is connected on demand has an interval.
  package static func everyWithoutVisits(at path: ConfigurationPath) -> ConfigurationError {
    path.key("every").error(
      "only a device that is connected on demand has an interval", hint: "add \"connect\": \"on_demand\"")
  }
}

extension Configuration.Device {
  /// ``desired`` with ``period``.
  fileprivate var desiredValues: [Named<JSONValue>] {
    let short = period.map { Named("period", JSONValue.integer($0)) }
    return (desired ?? []) + (short.map { [$0] } ?? [])
  }
}

extension Property {
  /// Why the property cannot be kept at a value; nil when it can.
  fileprivate func problem(withDesired json: JSONValue) -> String? {
    if kind == .event { return "\(name) is an event: only a state can hold a value" }
    do throws(ValueProblem) {
      _ = try value(of: json)
      return nil
    } catch {
      return error.reason
    }
  }
}
