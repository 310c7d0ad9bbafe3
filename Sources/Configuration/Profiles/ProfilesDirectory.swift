import GATT
import Glibc
import JSON

/// Files of profiles: those of the folder that a configuration names, and single ones.
package enum ProfilesDirectory {
  /// What files hold.
  package struct Content: Sendable {
    package var profiles: [Profile] = []
    /// What is valid but probably a mistake.
    package var warnings: [ConfigurationError] = []
  }

  /// More are probably another folder.
  private static let mostFiles = 1000

  /// The profiles of all files `*.json` in the folder that the configuration names.
  /// - Parameter folder: that of the configuration.
  static func profiles(
    namedBy configuration: JSONDocument, in folder: String
  ) throws(ConfigurationErrors) -> Content {
    guard case .string(let named) = configuration.value["profiles_directory"], !named.isEmpty else {
      return Content()
    }
    let path = named.resolved(in: folder)
    let key = ConfigurationPath.root.key("profiles_directory")
    let (content, origins): (Content, [String: String])
    do throws(ConfigurationErrors) {
      (content, origins) = try self.content(of: path) { problem in
        ConfigurationErrors(errors: [key.error(path, problem).located(in: configuration)])
      }
    } catch {
      var failure = error
      failure.namedBy = key.section
      throw failure
    }
    if case .object(let own) = configuration.value["profiles"] {
      let errors = duplicates(own, origins, at: .root.key("profiles"))
      guard errors.isEmpty else {
        throw ConfigurationErrors(errors: errors.map { $0.located(in: configuration) })
      }
    }
    return content
  }

  /// The profiles of all files `*.json` in the folder `path`.
  package static func profiles(in path: String) throws(ConfigurationErrors) -> [Profile] {
    try content(of: path) { ConfigurationErrors.unreadable(path, $0) }.content.profiles
  }

  /// - Parameter failure: the error for a problem with the folder itself.
  private static func content(
    of path: String, _ failure: (FileProblem) -> ConfigurationErrors
  ) throws(ConfigurationErrors) -> (content: Content, origins: [String: String]) {
    let files: [String]
    do throws(FileProblem) {
      files = try self.files(in: path)
    } catch {
      var failure = failure(error)
      failure.isUnreadable = true
      throw failure
    }
    guard files.count <= mostFiles else {
      throw failure(FileProblem("\(files.count) files, the maximum is \(mostFiles)"))
    }
    var all = Content()
    var origins: [String: String] = [:]
    for file in files {
      let content = try read(file, origins)
      all.profiles += content.profiles
      all.warnings += content.warnings
      for profile in content.profiles { origins[profile.name] = file }
    }
    return (all, origins)
  }

  /// The profiles of a file, which has the shape of `profiles` in config.json.
  /// - Parameter origins: the files of the profiles so far, by their names.
  package static func read(
    _ file: String, _ origins: [String: String] = [:]
  ) throws(ConfigurationErrors) -> Content {
    let document = try Configuration.document(file: file)
    var errors = [wrapping(document.value)].compactMap { $0 }
    var profiles: [Profile]?
    if errors.isEmpty {
      profiles = ConfigurationRule<[Profile]>.profiles.read(document.value, nil, .root, &errors)
      if case .object(let object) = document.value { errors += duplicates(object, origins, at: .root) }
    }
    guard let profiles, errors.isEmpty else {
      throw ConfigurationErrors(file: file, errors: errors.map { $0.located(in: document) })
    }
    let warnings = profiles.flatMap { $0.warnings(at: .root.key($0.name)) }
    return Content(profiles: profiles, warnings: warnings.map { $0.located(in: document, of: file) })
  }

  /// A part of config.json, as the documents show it, or a profile without its name, instead of profiles by their names.
  private static func wrapping(_ document: JSONValue) -> ConfigurationError? {
    func isNoProfile(_ key: String) -> JSONObject? {
      guard case .object(let object) = document[key], object["properties"] == nil else { return nil }
      return object
    }
    let root = ConfigurationPath.root
    if let profiles = isNoProfile("profiles") {
      return root.name("profiles").error(
        "this is a part of config.json",
        hint:
          "put only what is within \"profiles\" into this file: {\"\(profiles.names.first ?? "heart")\": {…}}"
      )
    }
    guard isNoProfile("properties") != nil else { return nil }
    return root.name("properties").error(
      "the profile has no name", hint: "put all of it into {\"heart\": {…}}")
  }

  private static func duplicates(
    _ profiles: JSONObject, _ origins: [String: String], at path: ConfigurationPath
  ) -> [ConfigurationError] {
    profiles.names.compactMap { name in
      origins[name].map { path.name(name).error("\($0) already has this profile") }
    }
  }

  /// The files `*.json` in the folder `path`, in order.
  package static func files(in path: String) throws(FileProblem) -> [String] {
    guard let names = FolderNames.all(in: path) else { throw FileProblem() }
    return names.filter { $0.hasSuffix(".json") && !$0.hasPrefix(".") }.sorted().map { "\(path)/\($0)" }
  }
}
