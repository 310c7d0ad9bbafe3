/// Something in the configuration that cannot be: where, what, and what would do.
struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
  /// `devices[0].match.identifier`; empty for the document as a whole.
  let path: String
  let problem: String
  let hint: String?

  init(path: String, problem: String, hint: String? = nil) {
    self.path = path
    self.problem = problem
    self.hint = hint
  }

  /// One line: `devices[0].period: 0 is below 1 (…)`.
  var description: String {
    (path.isEmpty ? "" : "\(path): ") + problem + (hint.map { " (\($0))" } ?? "")
  }
}

/// Every error that was found in a configuration.
struct ConfigurationErrors: Error, Sendable, Equatable {
  let errors: [ConfigurationError]
}

/// A place in the document, as the user reads it.
struct ConfigurationPath: Sendable {
  static let root = ConfigurationPath(description: "")

  let description: String

  func key(_ name: String) -> ConfigurationPath {
    let isWord = !name.isEmpty && name.utf8.count <= 40 && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    let shown = isWord ? name : Excerpt(name).description
    return ConfigurationPath(description: description.isEmpty ? shown : "\(description).\(shown)")
  }

  func index(_ index: Int) -> ConfigurationPath {
    ConfigurationPath(description: "\(description)[\(index)]")
  }

  func error(_ problem: String, hint: String? = nil) -> ConfigurationError {
    ConfigurationError(path: description, problem: problem, hint: hint)
  }
}
