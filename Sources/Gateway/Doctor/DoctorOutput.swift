import EventLoop
import Findings
import JSON

/// Prints findings as they come, or at the end as JSON.
@LoopActor struct DoctorOutput {
  let json: Bool
  private(set) var findings: [Finding] = []

  mutating func add(_ finding: Finding) {
    findings.append(finding)
    if !json { for line in Self.lines(finding) { printOutput(line) } }
  }

  /// - Returns: whether there are faults.
  func end() -> Bool {
    let faults = findings.count { $0.level == .fault }
    let warnings = findings.count { $0.level == .warning }
    if json {
      printOutput(JSONValue.array(findings.map(\.json)).written)
    } else {
      func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
      printOutput("\(count(faults, "fault")), \(count(warnings, "warning"))")
    }
    return faults > 0
  }

  private nonisolated static let levelWidth = 9
  private nonisolated static let checkWidth = 16

  /// The finding, and the remedy below it.
  nonisolated static func lines(_ finding: Finding) -> [String] {
    let first =
      padded(finding.level.rawValue, levelWidth) + padded(finding.check.rawValue, checkWidth)
      + Excerpt.harmless(finding.text)
    guard let remedy = finding.remedy else { return [first] }
    return [first, padded("", levelWidth + checkWidth) + "→ " + Excerpt.harmless(remedy)]
  }
}
