import GATT
import JSON

/// A profile: a kind of peripheral.
struct ProfileKeys: ConfigurationSection {
  var manufacturer = ""
  var model: String?
  var requires: [BluetoothUUID] = []
  var alive: AliveKeys?
  var values: ValuesKeys?
  var offlineAfter: Profile.OfflineAfter?
  var properties: [Named<PropertyKeys>] = []

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("manufacturer", \.manufacturer, .label.leftOut(at: "")),
    ConfigurationKey("model", \.model, .optional(.label)),
    ConfigurationKey("requires", \.requires, .list(of: .uuid).leftOut(at: [])),
    ConfigurationKey("alive", \.alive, .optional(.section)),
    ConfigurationKey("values", \.values, .optional(.section)),
    ConfigurationKey("offline_after", \.offlineAfter, .optional(.offlineAfter)),
    ConfigurationKey(required: "properties", \.properties, .members(of: .section)),
  ]
}

struct AliveKeys: ConfigurationSection {
  var property = ""
  var period: String?

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "property", \.property, .propertyName),
    ConfigurationKey("period", \.period, .optional(.propertyName)),
  ]
}

/// The properties for lines `name:value`.
struct ValuesKeys: ConfigurationSection {
  var property = ""
  var set: String?

  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey(required: "property", \.property, .propertyName),
    ConfigurationKey("set", \.set, .optional(.propertyName)),
  ]
}

extension ConfigurationRule<String> {
  /// A reference to a property.
  package static var propertyName: Self { .text(longest: Property.longestName) }
}

extension ConfigurationRule<Profile.OfflineAfter> {
  /// A time in s, or `null`: never.
  static var offlineAfter: Self {
    let seconds = ConfigurationRule<Int>.integer(1...86_400)
    return ConfigurationRule(
      shape: .nullOr(seconds.shape),
      read: { json, _, path, errors in
        json == .null ? .never : seconds.read(json, nil, path, &errors).map { .seconds($0) }
      },
      write: { value in
        switch value {
        case .seconds(let seconds): .integer(seconds)
        case .never: .null
        }
      })
  }
}

extension ConfigurationRule<Profile> {
  /// A profile without a name.
  package static var profile: Self {
    let section = ConfigurationRule<ProfileKeys>.section
    return ConfigurationRule(
      shape: section.shape,
      read: { json, _, path, errors in
        let before = errors.count
        guard let keys = section.read(json, nil, path, &errors), errors.count == before else { return nil }
        return keys.profile("", at: path, &errors)
      },
      write: { section.write(ProfileKeys($0)) })
  }
}

extension ConfigurationRule<[Profile]> {
  /// An object of profiles by their names; they are added to those that there are.
  static var profiles: Self {
    let members = ConfigurationRule<[Named<ProfileKeys>]>.members(of: .section) { name in
      if !TopicWord.isValid(name) {
        return ConfigurationProblem("not a valid name", hint: "allowed are a-z, 0-9, - and _")
      }
      return (Profile.builtIn + [.radio]).contains { $0.name == name }
        ? ConfigurationProblem("the profile \(name) is built in", hint: "choose another name") : nil
    }
    return ConfigurationRule(
      shape: members.shape,
      read: { json, current, path, errors in
        let before = errors.count
        guard let named = members.read(json, nil, path, &errors), errors.count == before else { return nil }
        return (current ?? [])
          + named.compactMap { $0.value.profile($0.name, at: path.key($0.name), &errors) }
      },
      // Left out when there is none.
      write: { profiles in
        profiles.isEmpty ? nil : members.write(profiles.map { Named($0.name, ProfileKeys($0)) })
      })
  }
}

extension Profile {
  /// The profile as in config.json, without what has no key there.
  package var json: JSONValue? { ConfigurationRule<Profile>.profile.write(self) }
}

// MARK: Between the keys and the profile

extension ProfileKeys {
  /// The profile; nil, with an error for each wrong key, when there are any.
  fileprivate func profile(
    _ name: String, at path: ConfigurationPath, _ errors: inout [ConfigurationError]
  ) -> Profile? {
    let before = errors.count
    let inside = path.key("properties")
    var properties: [Property] = []
    for named in self.properties {
      guard let property = named.value.property(named.name, at: inside.key(named.name), &errors) else {
        continue
      }
      // Each property is checked by itself first, to find the errors of all.
      do throws(ProfileError) {
        properties += try Profile(name: name, properties: [property]).properties
      } catch {
        errors.append(path.error(error))
      }
    }
    guard errors.count == before else { return nil }
    do throws(ProfileError) {
      return try Profile(
        name: name, manufacturer: manufacturer, model: model, requires: requires,
        alive: alive?.property, alivePeriod: alive?.period, values: values?.property,
        valuesSet: values?.set, offlineAfter: offlineAfter, properties: properties)
    } catch {
      errors.append(path.error(error, among: properties.map(\.name)))
      return nil
    }
  }

  init(_ profile: Profile) {
    manufacturer = profile.manufacturer
    model = profile.model
    requires = profile.requires
    func name(_ index: Int) -> String { profile.properties[index].name }
    alive = profile.alive.map { AliveKeys(property: name($0.property), period: $0.period.map(name)) }
    values = profile.values.map { ValuesKeys(property: name($0.received), set: $0.sent.map(name)) }
    offlineAfter = profile.offlineAfter
    properties = profile.properties.map { Named($0.name, PropertyKeys($0)) }
  }
}

extension ConfigurationPath {
  /// The error of a profile, or of a part of it, which is at this path.
  ///
  /// - Parameter names: those of the profile's properties.
  func error(_ error: ProfileError, among names: [String] = []) -> ConfigurationError {
    ConfigurationPath(steps: steps + error.path).error(
      error.description, hint: error.unknownProperty.map { suggestion(for: $0, among: names) })
  }
}
