import GATT
import JSON

/// Profiles by name or file, for programs without a configuration.
extension Profile {
  /// The folders of profiles that are tried when none is named.
  private static let directories = [
    "./deploy/profiles", "/etc/microbit-gateway/profiles.d", installedDirectory,
  ]
  /// Where the package installs profiles, which a configuration can name in `profiles_directory`.
  package static let installedDirectory = "/usr/share/microbit-gateway/profiles"

  /// A built-in profile, the only one of a file `*.json`, or the one of this name in a folder of profiles.
  /// - Parameter directory: nil: the first of ``directories`` that exists.
  package static func named(
    _ text: String, in directory: String?
  ) throws(ConfigurationErrors) -> Profile {
    if let profile = builtIn.first(where: { $0.name == text }) { return profile }
    let isFile = text.hasSuffix(".json")
    let profiles = isFile ? try ProfilesDirectory.read(text).profiles : try known(directory)
    if isFile, profiles.count == 1 { return profiles[0] }
    if !isFile, let profile = profiles.first(where: { $0.name == text }) { return profile }
    let error =
      isFile
      ? ConfigurationError(
        problem: "\(profiles.count) profiles instead of one",
        hint: "name its folder with --profiles-directory, and the profile with --profile")
      : ConfigurationError(
        problem: "there is no profile \(Excerpt(text))",
        hint: suggestion(for: text, among: (builtIn + profiles).map(\.name)))
    throw ConfigurationErrors(file: isFile ? text : nil, errors: [error])
  }

  private static func isUsable(_ directory: String) -> Bool {
    FileProblem.isFolder(directory) && (directory.hasPrefix("/") || FileProblem.distrust(directory) == nil)
  }

  private static func known(_ directory: String?) throws(ConfigurationErrors) -> [Profile] {
    guard let directory = directory ?? directories.first(where: isUsable) else { return [] }
    return try ProfilesDirectory.profiles(in: directory)
  }
}
