import Glibc
import JSON
import TestSupport
import Testing

@testable import Configuration

/// The documents are consistent: their links have targets, and the configurations in them are valid.
@Suite struct DocumentTests {
  /// By path from the root of the repository.
  private let documents: [String: Document]

  init() throws {
    var documents: [String: Document] = [:]
    for path in try shippedFiles(in: "", endingWith: ".md") {
      do { documents[path] = try Document(path: path) } catch { throw Failure("\(path): \(error)") }
    }
    self.documents = documents
  }

  /// The paths and anchors that a document links to, without links to other sites.
  private func targets(of path: String) throws -> [(link: String, path: String, anchor: String?)] {
    let document = try #require(documents[path])
    return try document.links.filter { !$0.contains("://") }.map { link in
      let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      var place = path.split(separator: "/")
      if !parts[0].isEmpty { place.removeLast() }
      for component in parts[0].split(separator: "/") {
        if component != ".." {
          place.append(component)
        } else if place.popLast() == nil {
          throw Failure("\(path): \(link) points outside the repository")
        }
      }
      return (link, place.joined(separator: "/"), parts.count > 1 ? String(parts[1]) : nil)
    }
  }

  @Test func everyLinkHasATarget() throws {
    var count = 0
    for path in documents.keys {
      for (link, target, anchor) in try targets(of: path) {
        count += 1
        #expect(access(repositoryPath(target), F_OK) == 0, "\(path): \(link)")
        guard let anchor else { continue }
        #expect(documents[target]?.anchors.contains(anchor) == true, "\(path): \(link)")
      }
    }
    #expect(count > 50)
  }

  /// Every file in `docs` can be reached from README.md by links.
  @Test func everyPageIsLinkedFromReadme() throws {
    var found: Set = ["README.md"]
    var next = ["README.md"]
    while let path = next.popLast() {
      for (_, target, _) in try targets(of: path) where found.insert(target).inserted {
        if documents[target] != nil { next.append(target) }
      }
    }
    let pages = try shippedFiles(in: "docs", endingWith: "")
    #expect(pages.count > 10)
    for page in pages { #expect(found.contains(page), "\(page)") }
  }

  /// A block marked `json` is a configuration, one marked `json profiles` a file of profiles, one marked `json fleet` a
  /// message for all gateways.
  @Test func everyConfigurationIsValid() throws {
    let profiles = try ProfilesDirectory.profiles(in: repositoryPath("deploy/profiles"))
    var count = 0
    for (path, document) in documents {
      for block in document.blocks where block.language.hasPrefix("json") {
        let text = block.language == "json" ? block.text : #"{"profiles":\#(block.text)}"#
        count += 1
        do throws(ConfigurationErrors) {
          if block.language == "json fleet" {
            _ = try FleetConfiguration.read(Array(block.text.utf8))
            continue
          }
          let json = try Configuration.document(Array(text.utf8)).get()
          let known = json.value["profiles_directory"] == nil ? [] : profiles
          let configuration = try Configuration.parse(json, profiles: known).get()
          #expect(configuration.warnings().isEmpty, "\(path):\n\(text)")
        } catch {
          Issue.record("\(path): \(error.errors.map(\.description).joined(separator: "\n"))\n\(text)")
        }
      }
    }
    #expect(count > 15)
  }

  /// The excerpts in CONTRIBUTING.md are in the sources.
  @Test func contributingQuotesTheSources() throws {
    let blocks = try #require(documents["CONTRIBUTING.md"]).blocks
    let files = [
      ("json profiles", "deploy/profiles/battery.json"),
      ("swift", "Tests/EndToEndTests/ShippedProfileTests.swift"),
      ("swift", "Sources/GATT/MicrobitProperties.swift"),
    ]
    let shown = blocks.filter { block in files.contains { $0.0 == block.language } }
    try #require(shown.map(\.language) == files.map(\.0))
    for (block, file) in zip(shown, files) {
      let source = String(decoding: try shipped(file.1), as: UTF8.self)
      #expect(source.contains(block.text), "\(file.1):\n\(block.text)")
    }
  }

  /// Targets for tests alone.
  private static let tools = ["store-writer", "fuzz"]

  /// The table of modules in docs/architecture.md lists the targets of Package.swift and what each may import.
  @Test func architectureTableMatchesPackage() throws {
    let listed = try Self.targets().filter { !$0.key.hasSuffix("Tests") && !Self.tools.contains($0.key) }
    let page = String(decoding: try shipped("docs/architecture.md"), as: UTF8.self)
    let section = try #require(page.firstRange(of: "\n## Modules\n")).upperBound
    let rows = page[section...].prefix { $0 != "#" }.matches(of: #/\n\| `([\w-]+)` \| .* \| (.*) \|/#)
    var shown: [String: Set<String>] = [:]
    for row in rows {
      shown[String(row.output.1)] = Set(row.output.2.matches(of: #/`(\w+)`/#).map { String($0.output.1) })
    }
    #expect(listed.count > 20)
    for name in Set(listed.keys).union(shown.keys) { #expect(listed[name] == shown[name], "\(name)") }
  }

  /// Without a declared dependency, a target can be built only if the module happens to be built before it.
  @Test func targetsDeclareTheModulesThatTheyImport() throws {
    let targets = try Self.targets()
    let modules = Set(targets.values.joined()).filter { !$0.contains("-") }
    for (target, declared) in targets where !Self.tools.contains(target) {
      let folder = target.hasSuffix("Tests") ? "Tests" : "Sources"
      var imported: Set<String> = []
      for file in try shippedFiles(in: "\(folder)/\(target)", endingWith: ".swift") {
        let beginning = String(decoding: try shipped(file).prefix(1000), as: UTF8.self)
        let words = beginning.split(separator: "\n").map { $0.split(separator: " ") }
        imported.formUnion(words.filter { $0.dropLast().last == "import" }.map { String($0.last ?? "") })
      }
      #expect(imported.intersection(modules) == declared.intersection(modules), "\(target)")
    }
  }

  /// The targets in Package.swift, and what each may import.
  private static func targets() throws -> [String: Set<String>] {
    let package = String(decoding: try shipped("Package.swift"), as: UTF8.self)
    let calls = package.matches(
      of: #/(?:module|tests|executableTarget)\(\s*(?:\w+: )?"([\w-]+)"(?:,\s*(?:\w+: )?\[([^\]]*)\])?/#)
    let targets = calls.map { call in
      let names = (call.output.2 ?? "").matches(of: #/"([^"]+)"/#)
      return (String(call.output.1), Set(names.map { String($0.output.1) }))
    }
    return Dictionary(uniqueKeysWithValues: targets)
  }

  /// The texts in the first columns of the tables are in the sources; `…` stands for any text.
  @Test func troubleshootingQuotesTheSources() throws {
    let files = try shippedFiles(in: "Sources", endingWith: ".swift")
    let sources = try files.flatMap { try shipped($0) }.map(CChar.init(bitPattern:)) + [0]
    let page = String(decoding: try shipped("docs/troubleshooting.md"), as: UTF8.self)
    let symptoms = page.split(separator: "\n").filter { $0.hasPrefix("| ") }
      .compactMap { $0.dropFirst().split(separator: "|").first }
    var count = 0
    for symptom in symptoms {
      for (index, quotation) in symptom.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      where index % 2 == 1 {
        for part in quotation.split(separator: "…") {
          let text = String(part.drop { $0.isPunctuation || $0 == " " })
          count += 1
          #expect(strstr(sources, text) != nil, "\(quotation)")
        }
      }
    }
    #expect(count > 20)
  }

  @Test func linksAndAnchorsAreParsed() throws {
    let document = try Document(
      """
      # A *title*: `code` & more
      ## Twice
      ## Twice
      A [link](one.md#two), `[code](no.md)` and a [link over
      two `lines`](two.md); ![a picture](images/a.svg)

      ```sh
      # not a heading
      [not a link](no.md)
      ```
      """)
    #expect(document.anchors == ["a-title-code--more", "twice", "twice-1"])
    #expect(document.links == ["one.md#two", "two.md", "images/a.svg"])
    #expect(document.blocks.map(\.language) == ["sh"])
    #expect(document.blocks.first?.text == "# not a heading\n[not a link](no.md)\n")
  }
}
