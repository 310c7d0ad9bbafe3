import TestSupport

/// A Markdown document: its code blocks, links and headings.
struct Document {
  struct Block {
    /// The info string after the three backticks: `json`.
    let language: String
    var text = ""
  }

  private(set) var blocks: [Block] = []
  /// The targets of links and pictures: `mqtt.md#requests`.
  private(set) var links: [String] = []
  /// The anchors that GitHub generates for the headings: `a-device` for `## A device`.
  private(set) var anchors: Set<String> = []

  /// Reads a file of the repository.
  init(path: String) throws {
    try self.init(String(decoding: shipped(path), as: UTF8.self))
  }

  init(_ text: String) throws {
    var paragraphs = [""]
    var open: Block?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let content = line.drop { $0 == " " }
      if content.hasPrefix("```") {
        if let block = open { blocks.append(block) }
        open = open == nil ? Block(language: String(content.dropFirst(3))) : nil
      } else if open != nil {
        open?.text += line + "\n"
      } else if content.isEmpty {
        paragraphs.append("")
      } else {
        if line.hasPrefix("#") { addAnchor(of: line.drop { $0 == "#" }.dropFirst()) }
        paragraphs[paragraphs.count - 1] += line + "\n"
      }
    }
    guard open == nil else { throw Failure("a code block is not closed") }
    for paragraph in paragraphs { try addLinks(in: paragraph) }
  }

  private mutating func addAnchor(of heading: Substring) {
    let kept = heading.lowercased().filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }
    let anchor = String(kept.map { $0 == " " ? "-" : $0 })
    var unique = anchor
    var number = 1
    while !anchors.insert(unique).inserted {
      unique = "\(anchor)-\(number)"
      number += 1
    }
  }

  private mutating func addLinks(in paragraph: String) throws {
    // Every second part is inline code.
    let parts = paragraph.split(separator: "`", omittingEmptySubsequences: false)
    guard parts.count % 2 == 1 else { throw Failure("an unpaired backtick: \(paragraph)") }
    let prose = parts.indices.filter { $0 % 2 == 0 }.map { parts[$0] }.joined()
    links += prose.matches(of: #/\]\(([^)\s]+)\)/#).map { String($0.output.1) }
  }
}
