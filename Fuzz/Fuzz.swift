import Glibc

/// Feeds one of the parsers of foreign bytes with inputs of libFuzzer: `fuzz NAME [OPTION…] [FOLDER | FILE]…`, with the
/// options of libFuzzer. `scripts/fuzz` builds and runs it.
typealias Check = @Sendable ([UInt8]) -> Void

/// By name, in the order in which they run.
let checks: KeyValuePairs<String, Check> = [
  "json": checkJSON, "configuration": checkConfiguration, "profile": checkProfile, "value": checkValue,
  "frame": checkFrames, "program": checkMessage, "notifications": checkNotifications, "command": checkCommand,
  "request": checkRequest, "control": checkControl, "http": checkHTTP,
  "topic": checkTopic, "info": checkInfo, "broker": checkBroker, "stored": checkStored, "name": checkName,
  "dbus": checkDBus, "simulator": checkSimulator, "log": checkLog, "radio": checkRadio,
]

/// Set before the first input.
nonisolated(unsafe) private var check: Check = { _ in }

/// Called by the main function of libFuzzer with the arguments. Without a name it lists them.
@_cdecl("LLVMFuzzerInitialize")
func initialize(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> Int32 {
  let name = count.pointee > 1 ? arguments.pointee[1].map { String(cString: $0) } : nil
  guard let found = checks.first(where: { $0.key == name })?.value else {
    print(checks.map(\.key).joined(separator: "\n"))
    exit(name == nil ? 0 : 2)
  }
  check = found
  // The rest is libFuzzer's.
  arguments.pointee[1] = arguments.pointee[0]
  arguments.pointee += 1
  count.pointee -= 1
  return 0
}

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func test(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  check(Array(UnsafeBufferPointer(start: start, count: count)))
  return 0
}

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
