import Configuration
import JSON

/// The configuration that `init` finds.
struct PresentConfiguration {
  /// Where the file is, or will be; perhaps a link.
  let path: String
  /// The content; nil: there is none, or it has errors.
  var document: JSONValue?
  var configuration = Configuration()
  /// The errors of the file that is there.
  var problem: String?

  var isThere: Bool { document != nil || problem != nil }
  var folder: String { ConfigurationFile.folder(of: path) }

  /// The entries of `devices`; if the key is left out, the default.
  var entries: [JSONValue] { document.map { $0["devices"]?.elements ?? [.everyMicrobit] } ?? [] }

  /// The text as written to the file.
  static func text(_ document: JSONValue) -> String { document.text(expanded: 2) + "\n" }

  /// The new file; of a present one, the lines that differ, with `-` and `+`.
  func changes(to text: String) -> [String] {
    let new = text.split(separator: "\n")
    guard let document else { return new.map { "  \($0)" } }
    let old = Self.text(document).split(separator: "\n")
    let changes = new.difference(from: old)
    /// The changed lines, each with how many of the kept lines come before it.
    func lines(_ changes: [CollectionDifference<Substring>.Change], _ mark: String) -> [(Int, String)] {
      changes.enumerated().map { index, change in
        switch change {
        case .remove(let offset, let line, _), .insert(let offset, let line, _):
          (offset - index, "  \(mark) \(line)")
        }
      }
    }
    return (lines(changes.removals, "-") + lines(changes.insertions, "+")).sorted { $0.0 < $1.0 }.map(\.1)
  }
}

extension PresentConfiguration {
  init(readingFrom path: String) {
    self.init(path: path)
    let bytes: [UInt8]
    do throws(FileProblem) {
      bytes = try FileProblem.read(path)
    } catch {
      if !error.isMissing { problem = "\(path): \(error)" }
      return
    }
    do throws(ConfigurationErrors) {
      let file = try ConfigurationFile.parse(bytes, at: path, filesMayBeAway: true)
      (configuration, document) = (file.configuration, file.document)
    } catch {
      let file = error.file ?? path
      problem = error.errors.map { $0.description(in: file) }.joined(separator: "\n")
    }
  }
}
