import JSON
import TestSupport
import Testing

/// Whoever follows a guide finds its words on the page.
@Suite struct GuideTests {
  @Test(arguments: ["raspberry-pi", "classroom", "page"])
  func labelsAreThoseOfThePage(guide: String) throws {
    let english = try JSONParser.parse(try shipped("Sources/Web/Page/texts/en.json"))
    let texts = Set(Self.texts(in: english))
    let document = String(decoding: try shipped("docs/\(guide).md"), as: UTF8.self)
    let labels = Self.labels(in: document).filter { label in
      !Self.ofOthers.contains { label.hasPrefix($0) }
    }
    #expect(labels.count > 4)
    for label in labels { #expect(texts.contains(label), "\(label)") }
  }

  /// What Raspberry Pi Imager, MakeCode, or a value's age says.
  private static let ofOthers = [
    "trixie", "Project Settings", "No Pairing Required", "Extensions", "bluetooth ", "on start", "2 min ago",
  ]

  private static func texts(in json: JSONValue) -> [String] {
    switch json {
    case .object(let object): object.members.flatMap { texts(in: $0.value) }
    case .array(let elements): elements.flatMap(texts)
    default: [json.text].compactMap { $0 }
    }
  }

  /// What stands between single asterisks, outside of code.
  private static func labels(in document: String) -> [String] {
    let lines = document.split(separator: "\n", omittingEmptySubsequences: false)
    var isCode = false
    var prose: [Substring] = []
    for line in lines {
      if line.hasPrefix("```") { isCode.toggle() } else if !isCode { prose.append(line) }
    }
    let text = prose.joined(separator: " ")
    return text.matches(of: /(?:^|[^*\w])\*([^*]+)\*(?!\*)/).map { match in
      match.output.1.split(separator: " ").joined(separator: " ")
    }
  }
}
