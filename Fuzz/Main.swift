import Glibc

/// Feeds one of the parsers of foreign bytes with inputs of libFuzzer: `fuzz NAME [OPTION…] [FOLDER | FILE]…`, with the
/// options of libFuzzer. `scripts/fuzz` builds and runs it.
@main enum Fuzz {
  typealias Check = @Sendable ([UInt8]) -> Void

  /// By name, in the order in which they run.
  static let checks: KeyValuePairs<String, Check> = [
    "json": checkJSON, "configuration": checkConfiguration, "profile": checkProfile, "value": checkValue,
    "frame": checkFrames, "command": checkCommand, "request": checkRequest, "control": checkControl,
    "topic": checkTopic, "info": checkInfo, "stored": checkStored, "name": checkName, "dbus": checkDBus,
    "simulator": checkSimulator, "log": checkLog,
  ]

  /// Set before the first input.
  nonisolated(unsafe) private static var check: Check = { _ in }

  static func main() {
    var arguments = CommandLine.arguments
    let name = arguments.count > 1 ? arguments.remove(at: 1) : ""
    guard let found = checks.first(where: { $0.key == name })?.value else {
      print(checks.map(\.key).joined(separator: "\n"))
      return
    }
    check = found
    var count = Int32(arguments.count)
    var strings = arguments.map { strdup($0) } + [nil]
    let status = strings.withUnsafeMutableBufferPointer { buffer in
      var base = buffer.baseAddress
      return runDriver(&count, &base) { start, count in
        Fuzz.check(Array(UnsafeBufferPointer(start: start, count: count)))
        return 0
      }
    }
    exit(status)
  }
}

/// libFuzzer's, a C function.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
  _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// Ends the process, which libFuzzer reports with the input, if the claim does not hold.
func expect(_ claim: Bool, _ what: @autoclosure () -> String) {
  if !claim { fatalError(what()) }
}

/// Ends the process if the text is not fit for a terminal.
func expectVisible(_ text: String) {
  expect(!text.isEmpty, "an empty text")
  expect(
    !text.unicodeScalars.contains(where: \.isInvisible), "invisible characters in \(text.debugDescription)")
}
