import CLinux
import EventLoop
import Gateway
import Glibc
import Log

@main
struct Main {
  static func main() {
    // Before any thread starts, so that each inherits it.
    Signals.block([SIGTERM, SIGINT])
    // A reader of the log, or a broker, that goes away is an error of that write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    // So is a limit on the size of files: to the state database that is a full disk.
    signal(SIGXFSZ, SIG_IGN)
    // The few threads beside the loop do little: a heap of its own for each would be its memory for good.
    mallopt(M_ARENA_MAX, 1)
    let arguments: Arguments
    do throws(Arguments.Usage) {
      arguments = try Arguments(ProgramArguments.all)
    } catch {
      switch error {
      case .help(let text):
        print(text)
        exit(GatewayCommand.ExitStatus.done.rawValue)
      case .wrong(let text):
        complain("microbit-gateway: \(text)")
        exit(GatewayCommand.ExitStatus.usage.rawValue)
      }
    }
    if let level = arguments.logLevel { Logger.level = level }
    // Elsewhere a terminal that is closed ends the program.
    if case .run = arguments.command { Signals.block([SIGHUP]) }
    let loop = EventLoop()
    Task(executorPreference: loop) {
      exit(await arguments.command.execute(on: loop).rawValue)
    }
    loop.run()
  }
}
