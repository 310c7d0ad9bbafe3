import Configuration
import Findings

/// Reads config.json. Where it has errors, the rest is used for the other checks.
struct ConfigurationCheck {
  /// The file; nil: the first of `places` that exists.
  let path: String?
  var places = ConfigurationFile.searched
  /// The configuration of the service, and what the service may read; nil: there is no service.
  var service = (path: ConfigurationFile.service, access: ServiceAccess())

  struct Outcome: Sendable {
    var findings: [Finding] = []
    var file: ConfigurationFile?
    /// The configuration with the defaults for the keys in ``broken``.
    var configuration: Configuration { file?.configuration ?? Configuration() }
    /// The keys with errors.
    var broken: Set<String> = []
    /// Nothing of the file can be read.
    var isUnreadable = false

    /// The gateway's id; nil: not known, because of an error.
    var gateway: GatewayID? {
      isUnreadable || broken.contains("gateway") ? nil : StateFolder.gatewayID(of: configuration)
    }
  }

  /// Errors in one key may lead to errors in another.
  private static let mostRounds = 4

  func run() -> Outcome {
    var result = Outcome()
    for _ in 0..<Self.mostRounds {
      do throws(ConfigurationErrors) {
        let file = try ConfigurationFile.load(path: path, searching: places, without: result.broken)
        result.file = file
        if result.findings.isEmpty { result.findings.append(.ok(.configuration, "\(file.path) is valid")) }
        result.findings += file.warnings.map { warning($0, in: file.path) }
        if result.broken.isEmpty, let open = Self.setUpIsOpen(file) { result.findings.append(open) }
        result.findings += try serviceFindings(file, without: result.broken)
        return result
      } catch {
        // Findings of later rounds follow from those of the first.
        if result.findings.isEmpty { result.findings = findings(error) }
        if error.file == nil { return result }
        let known = Set(error.sections.compactMap { $0 })
        if error.sections.contains(nil) || known.isSubset(of: result.broken) { break }
        result.broken.formUnion(known)
      }
    }
    result.isUnreadable = true
    return result
  }

  /// Nothing is set up: whoever has the one-time code decides in a browser.
  static func setUpIsOpen(_ file: ConfigurationFile) -> Finding? {
    file.isSetUp
      ? nil
      : .warning(
        .configuration, "nothing is set up yet",
        remedy: "sudo microbit-gateway setup, or sudo microbit-gateway init")
  }

  /// What the service cannot read, if the file is its configuration. It is loaded by the path that the service uses.
  func serviceFindings(
    _ file: ConfigurationFile, without broken: Set<String> = []
  ) throws(ConfigurationErrors) -> [Finding] {
    guard let access = service.access, let real = ServiceAccess.real(service.path),
      ServiceAccess.real(file.path) == real
    else { return [] }
    return access.findings(try ConfigurationFile.load(path: service.path, without: broken))
  }

  private func findings(_ failure: ConfigurationErrors) -> [Finding] {
    failure.errors.map { error in
      let text = failure.file.map { error.withoutHint.description(in: $0) } ?? error.problem
      // The file is perhaps only closed to this user.
      if error.isDenied {
        return .warning(.configuration, text, remedy: "sudo microbit-gateway doctor")
      }
      return .fault(
        .configuration, text, remedy: error.hint ?? "correct it: docs/config-reference.md has all keys")
    }
  }

  private func warning(_ warning: ConfigurationError, in file: String) -> Finding {
    .warning(
      .configuration, warning.withoutHint.description(in: file), remedy: warning.hint ?? "correct the entry")
  }
}
