import GATT
import JSON

/// The profiles that devices use by their options.
extension Configuration {
  /// The profile of this name: a built-in one, or one of the configuration.
  package func profile(named name: String) -> Profile? {
    (Profile.builtIn + [.radio] + profiles).first { $0.name == name }
  }

  /// The profile that the options name, with the properties in use only.
  /// - Parameter sent: the names of the properties that the device has sent, for a profile that grows with them; nil: any.
  package func profile(of options: DeviceOptions, sent: Set<String>? = nil) -> Profile {
    let whole = options.profile.flatMap { profile(named: $0) } ?? .microbit
    var names = Set(DeviceOptionTable.table.properties.effective(options.properties))
    let isAutomatic = names.remove(DeviceOptions.automatic) != nil
    let listed = names
    if isAutomatic { names = (whole.growsWithObjects ? sent : nil) ?? Set(whole.automaticProperties) }
    names.subtract(options.exclude ?? [])
    if isAutomatic { names.formUnion(listed) }
    names.formUnion(options.desiredValues.map(\.name))
    return whole.limited(to: names, isAutomatic: isAutomatic)
  }

  /// The options of an entry with those that requests changed, as far as their profile and properties still exist. Those
  /// of an entry for another profile do not count, and its `exclude` is about its own properties.
  package func options(_ entry: DeviceOptions, changedBy changes: DeviceOptions) -> DeviceOptions {
    var (entry, changes) = (entry, changes)
    let configured = entry.profile ?? Profile.microbit.name
    let requested = changes.profile.flatMap { profile(named: $0) }?.name
    changes.profile = requested
    if let requested, requested != configured { entry = DeviceOptions() }
    guard let profile = profile(named: requested ?? configured) else { return entry }
    let properties =
      changes.properties?.filter { $0 == DeviceOptions.automatic || profile.property(named: $0) != nil } ?? []
    changes.properties = properties.isEmpty ? nil : properties
    if changes.properties?.contains(DeviceOptions.automatic) == false { entry.exclude = nil }
    if let used = changes.desired {
      let configured = entry.desired ?? []
      let names = configured.map(\.name)
      changes.desired = configured + used.filter { !names.contains($0.name) }
    }
    return entry.merging(changes)
  }

  /// The values that the properties are to hold, by property.
  package func desired(of options: DeviceOptions) -> [String: Value] {
    let profile = profile(of: options)
    var values: [String: Value] = [:]
    for member in options.desiredValues {
      values[member.name] = profile.property(named: member.name)?.codec.value(member.value)
    }
    return values
  }

  /// What the options name that the profile lacks or cannot do.
  package func problems(of options: DeviceOptions, at path: ConfigurationPath) -> [ConfigurationError] {
    let name = options.profile ?? Profile.microbit.name
    guard let profile = profile(named: name) else {
      let names = (Profile.builtIn + profiles).map(\.name)
      return [
        path.key("profile").error(
          "there is no profile \(Excerpt(name))", hint: suggestion(for: name, among: names))
      ]
    }
    var errors = options.idle(with: profile, at: path)
    func unknown(_ name: String, _ path: ConfigurationPath) {
      // A hint is expensive, and a request may have thousands of unknown names.
      let hint = errors.count < 20 ? suggestion(for: name, among: profile.properties.map(\.name)) : nil
      errors.append(path.error("the profile \(profile.name) has no property \(Excerpt(name))", hint: hint))
    }
    if let adapter = options.adapter, !bluetooth.adapters.contains(adapter) {
      errors.append(
        path.key("adapter").error(
          "\(adapter) is not an adapter of this gateway",
          hint: "bluetooth.adapters has \(bluetooth.adapters.joined(separator: ", "))"))
    }
    // Read once, as the next ones: an option is JSON, and a request may have thousands of names.
    let (list, names) = (path.key("properties"), options.properties)
    if names?.isEmpty == true {
      errors.append(list.error("must not be empty", hint: "leave the key out instead"))
    }
    for (index, name) in (names ?? []).enumerated()
    where name != DeviceOptions.automatic && profile.property(named: name) == nil {
      unknown(name, names?.count == 1 ? list : list.index(index))
    }
    for (index, name) in (options.exclude ?? []).enumerated() where profile.property(named: name) == nil {
      unknown(name, path.key("exclude").index(index))
    }
    let adjust = path.key("adjust")
    for member in options.adjust ?? [] {
      if let property = profile.property(named: member.name) {
        errors += member.value.problems(with: property, at: adjust.key(member.name))
      } else {
        unknown(member.name, adjust.name(member.name))
      }
    }
    let desired = Set((options.desired ?? []).map(\.name))
    for member in options.desiredValues {
      let place = desired.contains(member.name) ? path.key("desired") : path
      if let property = profile.property(named: member.name) {
        errors += property.problem(withDesired: member.value).map { [place.key(member.name).error($0)] } ?? []
      } else {
        unknown(member.name, place.name(member.name))
      }
    }
    return errors
  }
}

extension DeviceOptions {
  /// The options that have no effect with the profile.
  fileprivate func idle(with profile: Profile, at path: ConfigurationPath) -> [ConfigurationError] {
    func errors(
      _ keys: [String], _ problem: @autoclosure () -> String, hint: String = "remove it"
    ) -> [ConfigurationError] {
      keys.filter { values[$0] != nil }.map { path.key($0).error(problem(), hint: hint) }
    }
    let ofKind =
      profile.hasLinks
      ? errors(["offline_after"], "only a device that is only heard has it: a link has an end of its own")
      : errors(
        ["pair", "passkey", "connect", "every", "log"],
        "a device of the profile \(profile.name) is only heard, never connected")
    if profile.usesBTHome { return ofKind }
    return ofKind
      + errors(
        ["key", "key_file"], "only BTHome is decrypted, and the profile is \(profile.name)",
        hint: "remove it, or use \"profile\": \"bthome\"")
  }

  /// Notes the names of properties that get a desired value though `profile` leaves them out: they are used until that value is
  /// null. The values are stored elsewhere.
  package mutating func noteDesired(_ desired: [Named<JSONValue>], missingFrom profile: Profile) {
    var names = (self.desired ?? []).map(\.name)
    for member in desired {
      if member.value == .null {
        names.removeAll { $0 == member.name }
      } else if profile.property(named: member.name) == nil {
        names.append(member.name)
      }
    }
    self.desired = names.isEmpty ? nil : names.map { Named($0, .null) }
  }
}

extension ConfigurationError {
  /// Only a device that is connected on demand has an interval.
  package static func everyWithoutVisits(at path: ConfigurationPath) -> ConfigurationError {
    path.key("every").error(
      "only a device that is connected on demand has an interval", hint: "add \"connect\": \"on_demand\"")
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
