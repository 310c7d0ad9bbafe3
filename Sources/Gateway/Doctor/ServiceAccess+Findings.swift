import Configuration
import Findings

/// What the service cannot read of its configuration.
extension ServiceAccess {
  /// The findings about config.json, and the files that it names.
  func findings(_ file: ConfigurationFile) -> [Finding] {
    let folder = ConfigurationFile.folder(of: file.path)
    // All of its files are hidden then.
    if let real = Self.real(folder), isHidden(real) {
      let copy = "sudo rm \(folder.shellWord); sudo cp -r \(real.shellWord) \(folder.shellWord)"
      return [fault(folder, remedy: copy)]
    }
    let (mqtt, http) = (file.configuration.mqtt, file.configuration.http)
    let keys = file.configuration.devices.enumerated().map { ("devices[\($0)].key_file", $1.keyFile) }
    let named =
      [
        ("mqtt.password_file", mqtt.passwordFile), ("mqtt.tls.ca_file", mqtt.tls?.caFile),
        ("mqtt.tls.cert_file", mqtt.tls?.certFile), ("mqtt.tls.key_file", mqtt.tls?.keyFile),
        ("http.password_file", http.passwordFile), ("http.read_password_file", http.readPasswordFile),
      ] + keys
    let own = finding(file.path) { obstacle in
      Self.isFile(file.path, in: folder)
        ? Self.permit("chmod 644", file.path, obstacle)
        : Self.installCommand("-m 644", file.path, file.path)
    }
    return [own].compactMap { $0 }
      + named.compactMap { key, path in
        guard let path else { return nil }
        return finding(path) { obstacle in
          Self.isFile(path, in: folder)
            ? Self.permit("chown \(Self.user)", path, obstacle) + "; sudo chmod 600 \(path.shellWord)"
              // The file may belong to another program.
            : "\(Self.copyCommand(path, to: folder)); then name the copy in \(key)"
        }
      } + profiles(file.configuration, in: folder)
  }

  /// The finding about the folder of profiles, or about the first of its files.
  private func profiles(_ configuration: Configuration, in folder: String) -> [Finding] {
    guard let directory = configuration.profilesDirectory?.resolved(in: folder) else { return [] }
    let files = (try? ProfilesDirectory.files(in: directory)) ?? []
    for path in [directory] + files {
      let finding = finding(path) { obstacle in
        Self.isFile(path, in: folder)
          ? Self.permit("chmod -R a+rX", directory, obstacle)
          : "sudo cp -rL \(directory.shellWord) \("\(folder)/profiles-copy".shellWord); "
            + "then name the copy in profiles_directory"
      }
      if let finding { return [finding] }
    }
    return []
  }

  private func finding(_ path: String, remedy: (Obstacle) -> String) -> Finding? {
    obstacle(to: path).map { fault(path, remedy: remedy($0)) }
  }

  private func fault(_ path: String, remedy: String) -> Finding {
    .fault(
      .configuration, "the service, which runs as \(Self.user), may not read \(path)", remedy: remedy)
  }

  private static func permit(_ command: String, _ path: String, _ obstacle: Obstacle) -> String {
    let folder = ConfigurationFile.folder(of: path)
    return (obstacle == .folder ? "sudo chmod 755 \(folder.shellWord); " : "")
      + "sudo \(command) \(path.shellWord)"
  }

  /// Whether the file itself, and not only a link to it, is in `folder` or below.
  private static func isFile(_ path: String, in folder: String) -> Bool {
    guard let file = real(path), let folder = real(folder) else { return false }
    return file.hasPrefix("\(folder)/")
  }
}
