import Configuration
import EventLoop
import Glibc
import JSON
import Recording

/// `record`: the readings of all devices, in a file of the gateway.
extension DeviceCommand {
  func record() async throws(CommandFailure) {
    let name = values.word(1)
    switch values.words[0] {
    case "start":
      let data = try await access.request("record/start", ["name": name.map(JSONValue.string)])
      show(data) { "recording as \($0): \(access.command("record stop")) ends it" }
    case "stop":
      let data = try await access.request("record/stop")
      show(data) { "\(Self.line(data))\n\(access.command("record csv \($0)")) > \($0).csv" }
    case "delete":
      guard let name else {
        throw CommandFailure(.usage, "record delete needs a name: \(access.command("record list"))")
      }
      show(try await access.request("record/delete", ["name": .string(name)])) { "\($0) is deleted" }
    case "csv":
      let all = try await access.request("record/list").elements.compactMap { $0["name"]?.text }
      guard let text = name ?? all.first else {
        throw CommandFailure(.unavailable, "there is no recording: \(access.command("record start"))")
      }
      guard let recording = Recording.named(text, among: all) else {
        throw CommandFailure(
          .unavailable, "there is no recording \(Excerpt(text)): \(access.command("record list"))")
      }
      try await printTable(recording, values.has(.wide) ? .wide : .rows)
    case _:
      let data = try await access.request("record/list")
      if json { return printOutput(data.text()) }
      if data.elements.isEmpty { printError("there is no recording: \(access.command("record start"))") }
      for recording in data.elements { printOutput(Self.line(recording)) }
    }
  }

  private func show(_ data: JSONValue, _ text: (String) -> String) {
    printOutput(json ? data.text() : text(data["name"]?.shown ?? ""))
  }

  /// A recording on one line.
  nonisolated static func line(_ recording: JSONValue) -> String {
    let started = recording["started"]?.time
    let end = recording["ended"]?.time.map { "to \($0.dated(on: started))" } ?? "goes on"
    let reason: String? =
      switch recording["end"]?.text {
      case "time": "ended after 3 hours"
      case "size": "ended, as its file was full"
      case "disk": "ended, as the disk was full"
      default: nil
      }
    let size = ((recording["bytes"]?.integer ?? 0) + 1023) / 1024
    return [
      recording["name"]?.shown, started.map { "from \($0.dated(on: nil)) \(end)" },
      recording["readings"]?.integer.map { "\($0) readings" }, "\(size) KiB", reason,
      recording["lost"]?.integer.map { "\($0) readings lost" },
    ].compactMap { $0 }.joined(separator: "  ")
  }

  /// The file is read by the command itself, in the state folder of the gateway.
  private func printTable(
    _ name: String, _ layout: RecordingTable.Layout
  ) async throws(CommandFailure) {
    let environment = StateFolder.environment
    guard let id = GatewayID(access.gateway),
      let folder = StateFolder.recordings(of: id, environment, isOfService: access.isOfService)
    else { throw CommandFailure(.unavailable, "there is no state folder") }
    do throws(RecordingFailure) {
      let written = try await EventLoop.blocking {
        () throws(RecordingFailure) -> StandardOutput.WriteResult in
        var table = try RecordingFolder(path: folder).table(name, layout)
        while let piece = try table.next() {
          let result = StandardOutput.write(piece)
          guard case .written = result else { return result }
        }
        return .written
      }
      StandardOutput.note(written)
    } catch {
      let isClosed = Glibc.access(folder, X_OK) != 0 && errno == EACCES
      throw CommandFailure(.unavailable, "\(error)\(isClosed ? " (use sudo)" : "")")
    }
  }
}
