import CLinux
import EventLoop
import Glibc
import Log

/// The program `microbit-gateway`.
package enum Program {
  package static func run() -> Never {
    // Writing to a closed pipe or connection is an error of that call, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    // So is exceeding the limit of file sizes; the state database handles it like a full disk.
    signal(SIGXFSZ, SIG_IGN)
    // One heap: the few threads beside the loop allocate little, and each heap keeps its memory.
    mallopt(M_ARENA_MAX, 1)
    let arguments: Arguments
    do throws(CommandLineError) {
      arguments = try Arguments(ProgramArguments.all)
    } catch {
      printError("microbit-gateway: \(error)\nTry: microbit-gateway --help")
      exit(GatewayCommand.ExitStatus.usage.rawValue)
    }
    if arguments.runsGateway {
      // A reload that is asked for during the start is done after it.
      Signals.block([SIGHUP])
    } else {
      // Commands log warnings and errors only.
      Logger.level = .warning
    }
    if let level = arguments.values?.logLevel { Logger.level = level }
    if let format = arguments.values?.logFormat { Logger.format = format }
    loop.run { exit(await execute(arguments.action).rawValue) }
  }

  /// Carries out a command. Results go to standard output, errors to standard error. Until the command has a link or a
  /// connection to end, a signal ends the process at once.
  @LoopActor private static func execute(
    _ action: CommandDeclaration.Action
  ) async -> GatewayCommand.ExitStatus {
    var status = GatewayCommand.ExitStatus.done
    do {
      try await action()
    } catch {
      let failure = error as? CommandFailure ?? CommandFailure(.refused, "\(error)")
      if !failure.text.isEmpty { printError(failure.text) }
      status = failure.status
    }
    guard let reason = StandardOutput.failure else { return status }
    printError("cannot write the output: \(reason)")
    return status == .done ? .refused : status
  }
}
