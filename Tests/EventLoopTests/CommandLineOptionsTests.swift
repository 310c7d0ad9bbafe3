import EventLoop
import Testing

/// One after the other: getopt(3) keeps its place in variables of the process.
@Suite(.serialized) struct CommandLineOptionsTests {
  private enum Option: String, CommandLineOption {
    case config, json, help

    var takesValue: Bool { self == .config }
  }

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
    let parsed = try CommandLineOptions<Option>(line.split(separator: " ").map(String.init))
    #expect(parsed.options.map { "\($0.option)=\($0.value)" } == options && parsed.words == words)
  }

  @Test(arguments: [
    ("p --wings", "unknown option --wings"), ("p read --config", "--config needs a value"),
    ("p write kitchen led_text -x", "unknown option -x (before a value that begins with -, write --)"),
  ])
  func errorsNameTheOption(line: String, text: String) {
    do throws(CommandLineError) {
      _ = try CommandLineOptions<Option>(line.split(separator: " ").map(String.init))
      Issue.record("no error")
    } catch {
      #expect(error.description == text)
    }
  }
}
