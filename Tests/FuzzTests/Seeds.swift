import TestSupport

/// What to begin with: the lines of `seeds/NAME`, and what is in other files of the repository.
func seeds(of name: String) throws -> [[UInt8]] {
  let file = "Tests/FuzzTests/seeds/\(name)"
  let isEscaped = ["http", "broker", "radio"].contains(name)
  var seeds =
    try shippedFiles(in: "Tests/FuzzTests/seeds", endingWith: name).contains(file)
    ? lines(of: file).map { isEscaped ? unescaped($0) : Array($0.utf8) } : []
  switch name {
  case "configuration": seeds.append(try shipped("config.json"))
  case "profile":
    seeds += try shippedFiles(in: "deploy/profiles", endingWith: ".json").map { try shipped($0) }
  case "program": seeds += FieldLine.all.map { Array($0.notifications.joined()) }
  case "notifications": seeds += FieldLine.all.map { [3, 7, 20, 5] + $0.notifications.joined() }
  case "request":
    for page in try shippedFiles(in: "docs", endingWith: ".md") {
      for line in try lines(of: page) where line.hasPrefix("> ") {
        guard let verb = line.firstRange(of: "/request/")?.upperBound else { continue }
        seeds.append(
          line[verb...].split(separator: " ", maxSplits: 1).joined(separator: "\n").utf8.map { $0 })
      }
    }
  default: break
  }
  return seeds.isEmpty ? [[0]] : seeds
}

private func lines(of file: String) throws -> [Substring] {
  String(decoding: try shipped(file), as: UTF8.self).split(separator: "\n")
}
