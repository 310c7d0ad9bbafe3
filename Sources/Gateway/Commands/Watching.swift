import EventLoop
import JSON

/// `watch`: the readings of devices as they arrive.
@LoopActor final class Watching {
  enum Format {
    /// A table that is updated on a terminal, else lines.
    case text
    case json
    case csv
  }

  private let access: GatewayAccess
  private let property: String?
  private let format: Format
  private var view = WatchView()
  private let ended = Waiter<CommandFailure?>()
  private let screen = Screen()
  private var redraw: LoopTimer?

  private static let csvHeader = "time,device,property,value,unit"
  /// A terminal that is redrawn more often flickers.
  private static let redrawInterval = Duration.milliseconds(100)

  init(_ access: GatewayAccess, property: String?, format: Format) {
    self.access = access
    self.property = property
    self.format = format
  }

  private var isLive: Bool { format == .text && screen.isTerminal }

  /// Runs until it is interrupted, or the gateway ends.
  func run(_ name: String?) async throws(CommandFailure) {
    var keys: JSONValue = ["property": property.map(JSONValue.string)]
    if let name { keys = keys.merging(try await access.device(name).selector) }
    access.client.onLine = { [weak self] in self?.receive($0) }
    access.client.onEnd = { [ended] in
      ended.resume(.success(CommandFailure(.unavailable, "the gateway has ended")))
    }
    await access.warnOfChangedConfiguration()
    if format == .csv { write(Self.csvHeader + "\n") }
    _ = try await access.request("watch", keys)
    Interruption().action = { [self] _ in stop() }
    screen.onProgress = { [weak self] in self?.outputProgressed() }
    let failure = try? await ended.value()
    draw()
    await screen.finish()
    if let failure { throw failure }
  }

  /// The user or the reader of the output has ended it.
  func stop() { ended.resume(.success(nil)) }

  private func receive(_ line: JSONValue) {
    switch format {
    case .json: write(line.written + "\n")
    case .csv: if let row = Self.csv(line) { write(row + "\n") }
    case .text:
      guard let text = view.update(line) else { return }
      if !isLive {
        write(text + "\n")
      } else if redraw == nil {
        redraw = loop.timer(after: Self.redrawInterval) { [weak self] in self?.draw() }
      }
    }
    if let count = line["dropped"]?.integer {
      printError("\(count) readings were left out: the output was not read fast enough")
    }
  }

  private func draw() {
    redraw?.cancel()
    redraw = nil
    guard isLive else { return }
    screen.show(view.lines(mostRows: TerminalSize.rows - 1))
  }

  private func write(_ text: String) {
    screen.write(text)
    // The gateway then drops what it cannot keep, and counts it.
    access.client.isPaused = screen.isFull
  }

  private func outputProgressed() {
    access.client.isPaused = screen.isFull
    if StandardOutput.isClosed { stop() }
  }

  // MARK: CSV

  /// A row of a spreadsheet (RFC 4180); nil if the line is not a reading.
  nonisolated static func csv(_ line: JSONValue) -> String? {
    guard let property = line["property"], let value = line["value"] else { return nil }
    return [line["time"], line["device"], property, value, line["unit"]].map { cell in
      cell.map { CSV.cell($0.plain) } ?? ""
    }.joined(separator: ",")
  }
}
