import BlueZSimulator
import CLinux
import EventLoop
import Glibc
import Peripherals

@main struct Main {
  static func main() {
    let arguments = readCommandLine(of: "microbit-simulator", Arguments.init)
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
      // Not buffered.
      _ = write(STDOUT_FILENO, "ready\n", 6)
      try await simulator.run()
      return 0
    } catch {
      printError("\(error)", of: "microbit-simulator")
    }
    // EX_UNAVAILABLE of sysexits.h.
    return 69
  }
}
