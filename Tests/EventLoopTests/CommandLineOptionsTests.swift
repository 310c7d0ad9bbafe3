import EventLoop
import Testing

/// One after the other: getopt(3) keeps its place in variables of the process.
@Suite(.serialized) struct CommandLineOptionsTests {
  private static let takesValue = ["config": true, "json": false, "help": false]

  private static let lines: [(line: String, options: [String], words: [String])] = [
    ("p write kitchen period -5", [], ["write", "kitchen", "period", "-5"]),
    ("p write -15.5 kitchen --json", ["json="], ["write", "-15.5", "kitchen"]),
    ("p --config -5 read", ["config=-5"], ["read"]),
    ("p read --config=a -h b", ["config=a", "help="], ["read", "b"]),
    ("p write a led_text -- -x --json", [], ["write", "a", "led_text", "-x", "--json"]),
    ("p a -", [], ["a", "-"]), ("p", [], []),
  ]

  @Test(arguments: lines)
  func optionsAndWordsAreInOrder(line: String, options: [String], words: [String]) throws {
    let parsed = try CommandLineOptions(line.split(separator: " ").map(String.init), Self.takesValue)
    #expect(parsed.options.map { "\($0.name)=\($0.value)" } == options && parsed.words == words)
  }

  @Test(arguments: [
    ("p --wings", "unknown option --wings"), ("p read --config", "--config needs a value"),
    ("p write kitchen led_text -x", "unknown option -x (before a value that begins with -, write --)"),
  ])
  func errorsNameTheOption(line: String, text: String) {
    do throws(CommandLineError) {
      _ = try CommandLineOptions(line.split(separator: " ").map(String.init), Self.takesValue)
      Issue.record("no error")
    } catch {
      #expect(error.description == text)
    }
  }
}
