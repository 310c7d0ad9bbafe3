import BlueZSimulator
import CLinux
import EventLoop
import Glibc

/// Exit statuses (sysexits.h).
enum Status {
  static let usage: Int32 = 64
  static let unavailable: Int32 = 69
}

@main struct Main {
  static func main() {
    let arguments: Arguments
    do throws(CommandLineError) {
      arguments = try Arguments(ProgramArguments.all)
    } catch {
      printError("\(error)\nTry 'microbit-simulator --help'.")
      exit(Status.usage)
    }
    if let text = arguments.text { return printOutput(text) }
    Signals.block([SIGTERM, SIGINT])
    loop.run { exit(await run(arguments)) }
  }

  @LoopActor private static func run(_ arguments: Arguments) async -> Int32 {
    do {
      let simulator = try await Simulator.start(arguments.options, address: arguments.bus)
      var control: ControlServer?
      if let path = arguments.control { control = try ControlServer(simulator, at: path) }
      defer { control?.stop() }
      loop.signals([SIGTERM, SIGINT]) { _ in simulator.stop() }
      printOutput("ready\n")
      try await simulator.run()
      return 0
    } catch {
      printError("\(error)")
    }
    return Status.unavailable
  }
}

/// Writes to stdout without buffering.
func printOutput(_ text: String) { _ = write(1, text, text.utf8.count) }

func printError(_ text: String) {
  let line = "microbit-simulator: \(text)\n"
  _ = write(2, line, line.utf8.count)
}
