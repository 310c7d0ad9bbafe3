import CLinux
import EventLoop
import GATT
import GATTServer
import Glibc
import Peripherals
import Sockets

@main struct Main {
  static func main() {
    signal(SIGPIPE, SIG_IGN)
    let arguments = readCommandLine(of: "microbit-peripheral", Arguments.init)
    let peripheral: ServedPeripheral
    do throws(PeripheralError) {
      peripheral = try arguments.peripheral()
    } catch {
      printError("\(error)")
      // EX_CONFIG of sysexits.h.
      exit(78)
    }
    Signals.block([SIGTERM, SIGINT])
    loop.run { await serve(peripheral, arguments) }
  }

  @LoopActor private static func serve(_ peripheral: ServedPeripheral, _ arguments: Arguments) async -> Never
  {
    let output = Output()
    let name = arguments.name ?? peripheral.profile.advertisedName
    let adapter = arguments.adapter
    let server = GATTServer(peripheral, name: name, adapter: adapter, state: stateFolder) { event in
      switch event {
      case .serving(let address): printError("serving \(name) on \(adapter) (\(address))")
      case .waiting(let reason): printError("waiting: \(reason)")
      case .written(let property, let bytes): output.write("\(property.name) \(property.text(of: bytes))\n")
      }
    }
    let run = loop.task { await server.run() }
    loop.task { await readValues(of: peripheral.profile, for: server) }
    loop.signals([SIGTERM, SIGINT]) { _ in run.cancel() }
    await run.value
    exit(0)
  }

  /// Where the state is kept, by the XDG Base Directory Specification; nil without a home.
  private static var stateFolder: String? {
    func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    let state = variable("XDG_STATE_HOME") ?? variable("HOME").map { "\($0)/.local/state" }
    return state.flatMap { $0.hasPrefix("/") ? "\($0)/microbit-peripheral" : nil }
  }

  /// Sets the values of the lines on standard input until it ends.
  @LoopActor private static func readValues(of profile: Profile, for server: GATTServer) async {
    var buffer = LineBuffer(longestLine: longestLine)
    var number = 0
    while !buffer.isTooLong {
      // On a thread of its own: standard input may be a file, which cannot be watched.
      let bytes = await EventLoop.blocking { readInput() }
      // The last line needs no end.
      buffer.append(bytes.isEmpty ? [UInt8(ascii: "\n")] : bytes)
      while let line = buffer.next() {
        number += 1
        do throws(PeripheralError) {
          let text = String(
            decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line[...], as: UTF8.self)
          guard let input = try InputLine(text, of: profile) else { continue }
          try server.set(input.property, to: input.value)
        } catch {
          printError("line \(number): \(error)")
        }
      }
      if bytes.isEmpty { return }
    }
    printError("line \(number + 1): longer than \(longestLine) bytes: nothing more is read")
  }

  /// The JSON of a value, of at most 512 bytes, is far shorter.
  private static let longestLine = 65_536

  /// What can be read; empty at the end.
  private static func readInput() -> [UInt8] {
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(STDIN_FILENO, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      return Array(chunk[..<max(0, count)])
    }
  }
}

/// Standard output, written without blocking: lines that it does not accept are dropped and counted.
@LoopActor final class Output {
  private var dropped = 0

  func write(_ line: String) {
    var state = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
    guard poll(&state, 1, 0) == 1, state.revents == Int16(POLLOUT),
      Glibc.write(STDOUT_FILENO, line, line.utf8.count) == line.utf8.count
    else {
      dropped += 1
      return
    }
    if dropped > 0 { printError("\(dropped) lines were dropped: standard output was not read") }
    dropped = 0
  }
}

func printError(_ text: String) { printError(text, of: "microbit-peripheral") }
