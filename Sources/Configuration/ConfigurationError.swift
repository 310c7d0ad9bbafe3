import JSON

/// A mistake in the configuration: where it is, what it is, and what to do about it.
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
  /// `devices[0].match.identifier`; the root for the document as a whole.
  package private(set) var path = ConfigurationPath.root
  /// Where in the file that is; nil without a file.
  package var position: TextPosition?
  /// The file that it is in, if that is not the file of the configuration.
  package var file: String?
  /// What is wrong, for a sentence after the path: "0 is below 20".
  package let problem: String
  /// What to do about the problem; nil where that is not known.
  package private(set) var hint: String?
  /// Whether a file is closed to this user.
  package private(set) var isDenied = false

  /// The error in one line: `devices[0].period: 0 is below 20 (…)`.
  package var description: String {
    let place = path.description
    return (place.isEmpty ? "" : "\(place): ") + problem + (hint.map { " (\($0))" } ?? "")
  }

  /// The error as compilers write it: `config.json:7:15: devices[0].period: 0 is below 20`.
  package func description(in file: String) -> String {
    let place = position.map { ":\($0.line):\($0.column)" } ?? ""
    return "\(self.file ?? file)\(place): \(self)"
  }

  /// The error without the hint.
  package var withoutHint: ConfigurationError {
    var error = self
    error.hint = nil
    return error
  }

  /// The error with its position in the document, and with the file if that is not the one of the configuration.
  func located(in document: JSONDocument, of file: String? = nil) -> ConfigurationError {
    var error = self
    error.position = document.positions.position(of: path.steps)
    error.file = file
    return error
  }
}

/// Every error that was found in a configuration, in a file of profiles, or in a message.
package struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
  /// The file that they are in; nil: there is none, or who has read it knows it.
  package var file: String?
  /// One error or more, in the order of the document.
  package let errors: [ConfigurationError]
  /// The configuration, or a file or folder of profiles, cannot be read at all, which may be different later.
  package var isUnreadable = false
  /// The key of the configuration that names the file; nil: they are in the configuration itself.
  var namedBy: String?

  /// The keys of the configuration that cannot be used; nil among them: all of it.
  package var sections: [String?] { namedBy.map { [$0] } ?? errors.map(\.path.section) }

  /// A line for each error: `config.json:7:15: devices[0].period: 0 is below 20`.
  package var description: String {
    errors.map { error in file.map { error.description(in: $0) } ?? error.description }.joined(
      separator: "\n")
  }

  /// The error of a file that cannot be read; nil: there is none.
  static func unreadable(
    _ file: String?, _ problem: FileProblem, hint: String? = nil
  ) -> ConfigurationErrors {
    let error = ConfigurationError(problem: problem.description, hint: hint, isDenied: problem.isDenied)
    return ConfigurationErrors(file: file, errors: [error], isUnreadable: true)
  }

  /// The errors with their file, unless they name one.
  func located(in file: String?) -> ConfigurationErrors {
    var located = self
    located.file = self.file ?? file
    return located
  }
}

/// The path to a value of the document.
package struct ConfigurationPath: Sendable, Equatable, CustomStringConvertible {
  /// The document itself.
  package static let root = ConfigurationPath(steps: [])

  let steps: [JSONStep]

  /// The path to the value of a member.
  package func key(_ name: String) -> ConfigurationPath { ConfigurationPath(steps: steps + [.key(name)]) }
  /// The path to the name of a member, not to its value.
  func name(_ name: String) -> ConfigurationPath { ConfigurationPath(steps: steps + [.name(name)]) }
  /// The path to an element of a list, counted from 0.
  package func index(_ index: Int) -> ConfigurationPath { ConfigurationPath(steps: steps + [.index(index)]) }

  /// The path as the user reads it: `devices[0].period`.
  package var description: String {
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

  /// The key of the document that it leads to first; nil for the document as a whole.
  package var section: String? {
    switch steps.first {
    case .key(let name), .name(let name): name
    case .index, nil: nil
    }
  }

  /// An error at this path.
  package func error(_ problem: String, hint: String? = nil) -> ConfigurationError {
    ConfigurationError(path: self, problem: problem, hint: hint)
  }

  /// The error of the key at this path, which names a file or a folder that cannot be read.
  func error(_ file: String, _ problem: FileProblem, hint: String? = nil) -> ConfigurationError {
    ConfigurationError(
      path: self, problem: "\(file): \(problem)", hint: hint, isDenied: problem.isDenied)
  }
}
