/// Something in the configuration that cannot be: where, what, and what would do.
struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
  /// `devices[0].match.identifier`; the root for the document as a whole.
  let path: ConfigurationPath
  /// Where in the file that is; nil for what is no file.
  var position: TextPosition?
  let problem: String
  let hint: String?

  init(
    path: ConfigurationPath = .root, position: TextPosition? = nil, problem: String, hint: String? = nil
  ) {
    self.path = path
    self.position = position
    self.problem = problem
    self.hint = hint
  }

  /// One line: `devices[0].period: 0 is below 20 (…)`.
  var description: String {
    let place = path.description
    return (place.isEmpty ? "" : "\(place): ") + problem + (hint.map { " (\($0))" } ?? "")
  }

  /// As compilers write it: `config.json:7:15: devices[0].period: 0 is below 20`.
  func description(in file: String) -> String {
    let place = position.map { ":\($0.line):\($0.column)" } ?? ""
    return "\(file)\(place): \(self)"
  }

  /// With its place in the document that it is about.
  func located(in document: JSONDocument) -> ConfigurationError {
    ConfigurationError(
      path: path, position: document.positions.position(of: path.steps), problem: problem, hint: hint)
  }
}

/// Every error that was found in a configuration.
struct ConfigurationErrors: Error, Sendable, Equatable {
  let errors: [ConfigurationError]
}

/// The way to a value of the document.
struct ConfigurationPath: Sendable, Equatable, CustomStringConvertible {
  static let root = ConfigurationPath(steps: [])

  let steps: [JSONStep]

  func key(_ name: String) -> ConfigurationPath { ConfigurationPath(steps: steps + [.key(name)]) }
  /// To the name of a member, not to its value.
  func name(_ name: String) -> ConfigurationPath { ConfigurationPath(steps: steps + [.name(name)]) }
  func index(_ index: Int) -> ConfigurationPath { ConfigurationPath(steps: steps + [.index(index)]) }

  /// As the user reads it: `devices[0].period`.
  var description: String {
    steps.reduce(into: "") { text, step in
      switch step {
      case .key(let name), .name(let name):
        let isWord =
          !name.isEmpty && name.utf8.count <= 40 && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        text += (text.isEmpty ? "" : ".") + (isWord ? name : Excerpt(name).description)
      case .index(let index):
        text += "[\(index)]"
      }
    }
  }

  func error(_ problem: String, hint: String? = nil) -> ConfigurationError {
    ConfigurationError(path: self, problem: problem, hint: hint)
  }
}
