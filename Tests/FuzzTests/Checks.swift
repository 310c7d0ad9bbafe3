/// Feeds one of the parsers of foreign bytes, and ends the process if it does not keep what it promises.
typealias Check = @Sendable ([UInt8]) -> Void

/// By name, in the order in which they run.
let checks: KeyValuePairs<String, Check> = [
  "json": checkJSON, "configuration": checkConfiguration, "profile": checkProfile, "value": checkValue,
  "frame": checkFrames, "program": checkMessage, "notifications": checkNotifications, "command": checkCommand,
  "request": checkRequest, "control": checkControl, "http": checkHTTP,
  "topic": checkTopic, "info": checkInfo, "broker": checkBroker, "stored": checkStored, "name": checkName,
  "dbus": checkDBus, "simulator": checkSimulator, "log": checkLog, "radio": checkRadio,
]

/// The input that is checked; libFuzzer stores its own.
nonisolated(unsafe) var checked: [UInt8] = []

func expect(_ claim: Bool, _ what: @autoclosure () -> String) {
  if !claim { fatalError("\(what()); the input: \(checked)") }
}

/// Ends the process if the text is not fit for a terminal.
func expectVisible(_ text: String) {
  expect(!text.isEmpty, "an empty text")
  expect(
    !text.unicodeScalars.contains(where: \.isInvisible), "invisible characters in \(text.debugDescription)")
}
