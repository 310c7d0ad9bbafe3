import Glibc
import TestSupport
import Testing

/// The manual pages and the shells' completions have every command and option of the programs' help.
@Suite struct ManualTests {
  private static let programs = ["microbit-gateway", "microbit-peripheral", "microbit-simulator"]

  private static func help(of name: String, _ command: String...) async throws -> String {
    let process = try ChildProcess(try program(name), command + ["--help"])
    try #require(try await process.exitStatus(within: Fixture.patience) == 0)
    return process.text
  }

  /// The words of a text, with their dashes.
  private static func words(_ text: String) -> Set<Substring> {
    Set(text.split { !$0.isLetter && $0 != "-" && $0 != "_" })
  }

  private static func options(in text: some StringProtocol) -> Set<Substring> {
    words(String(text)).filter { $0.hasPrefix("--") && $0.count > 2 }
  }

  /// The options in the first column of the help, not options of other programs in the descriptions.
  private static func options(ofHelp help: String) -> Set<Substring> {
    var found: Set<Substring> = []
    for line in help.split(separator: "\n") {
      let column = line.split(separator: " ", omittingEmptySubsequences: false).drop { $0.isEmpty }
        .prefix { !$0.isEmpty }
      guard column.first?.hasPrefix("--") == true else { continue }
      found.formUnion(options(in: column.joined(separator: " ")))
    }
    return found
  }

  /// The first words of the lines before `Options:` that begin with two spaces and a word.
  private static func commands(in help: String) -> Set<Substring> {
    let lines = help.split(separator: "\n").prefix { $0 != "Options:" }
    return Set(
      lines.filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }.compactMap {
        $0.split(separator: " ").first
      })
  }

  private static func text(_ path: String) throws -> String {
    String(decoding: try shipped(path), as: UTF8.self)
  }

  @Test(arguments: programs)
  func everyOptionIsDocumented(_ name: String) async throws {
    let help = try await Self.help(of: name)
    var options = Self.options(ofHelp: help)
    for command in name == "microbit-gateway" ? Self.commands(in: help) : [] {
      options.formUnion(Self.options(ofHelp: try await Self.help(of: name, String(command))))
    }
    try #require(options.contains("--help") && options.count > 5)
    let manual = Self.options(in: try Self.text("deploy/man/\(name).1").replacing(#"\-"#, with: "-"))
    let bash = Self.options(in: try Self.text("deploy/completion/bash/\(name)"))
    let zsh = Self.options(in: try Self.text("deploy/completion/zsh/_\(name)"))
    let fish = try Self.text("deploy/completion/fish/\(name).fish")
    #expect(options.subtracting(manual).isEmpty)
    #expect(options.subtracting(bash).isEmpty)
    #expect(options.subtracting(zsh).isEmpty)
    for option in options {
      #expect(fish.contains(" -l \(option.dropFirst(2)) "), "\(option)")
    }
  }

  @Test(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "needs Python"))
  func referenceOfTheConfigurationIsUpToDate() async throws {
    let script = repositoryPath("scripts/config-reference")
    let process = try ChildProcess("/usr/bin/python3", [script, "--check"])
    #expect(try await process.exitStatus(within: Fixture.patience) == 0, "\(process.text)")
  }

  @Test func everyCommandIsDocumented() async throws {
    let commands = Self.commands(in: try await Self.help(of: "microbit-gateway"))
    try #require(commands.isSuperset(of: ["run", "scan", "profile", "version"]))
    // Each is the beginning of a tagged paragraph: `.TP`, then `.B run` or `.BI read\  "ID PROPERTY"`.
    let paragraphs = try Self.text("deploy/man/microbit-gateway.1").split(separator: ".TP\n")
      .compactMap { $0.split { $0 == " " || $0 == "\\" || $0 == "\n" }.dropFirst().first }
    let bash = Self.words(try Self.text("deploy/completion/bash/microbit-gateway"))
    let zsh = try Self.text("deploy/completion/zsh/_microbit-gateway")
    let fish = try Self.text("deploy/completion/fish/microbit-gateway.fish")
    #expect(commands.subtracting(paragraphs).isEmpty)
    #expect(commands.subtracting(bash).isEmpty)
    for command in commands {
      #expect(zsh.contains("'\(command):"), "\(command)")
      #expect(fish.contains(" -a \(command) -d "), "\(command)")
    }
  }
}
