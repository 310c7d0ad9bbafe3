import Configuration
import EventLoop
import GATT
import JSON
import Log

/// The values of the program of one device: what it sends as lines `name:value`, and what is sent to it.
final class DeviceValues: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  /// How long the program may take to send a line back.
  private static let echoTimeout = Duration.seconds(2)

  private var table: ValueTable
  private var echoes: [Echo] = []
  /// When a line that is no value was last logged.
  private var problemLogged: Moment?
  private unowned let device: Device

  /// A line that was sent, and may come back.
  private final class Echo: @unchecked Sendable {
    // @unchecked: used on the loop's thread alone.
    let line: ValueLine
    var isReceived = false
    /// Ends the command; nil until it was written.
    var end: ((Outcome) -> Void)?

    init(_ line: ValueLine) { self.line = line }
  }

  init(of device: Device) {
    self.device = device
    table = ValueTable(device.context.store.records[device.address]?.values ?? [:])
  }

  private var profile: Profile { device.description.profile }

  /// What is published; nothing if the entry switches values off, or the profile has none.
  var described: [NamedValue] {
    guard let line = profile.values.map({ profile.properties[$0.received] }),
      let settings = device.settings.values.on
    else { return [] }
    return table.entries.sorted { $0.key < $1.key }.map {
      NamedValue($0.key, $0.value, settings[$0.key.description], of: line)
    }
  }

  // MARK: Receiving

  func linkUp() { table.linkUp() }

  func received(_ text: String) {
    guard let settings = device.settings.values.on, let line = ValueLine(text) else { return }
    let before = table
    switch table.receive(line, at: .now, today: Timestamp.now.day) {
    case .accepted: break
    case .sameKey(let other):
      return log("two values of its program have the same name in topics", "\(other), not \(line.name)")
    case .tooMany: return log("its program sends too many values", line.name)
    }
    if table != before { changed() }
    let offset = settings[line.key.description]?.adjustment.offset
    device.pass(line.key, offset.map(line.value.adding) ?? line.value)
    for echo in echoes where echo.line.matches(line) && !echo.isReceived {
      echo.isReceived = true
      echo.end?(.applied(actual: echo.line.value))
      break
    }
  }

  /// A line ended by silence after a full packet: a V1 drops the rest of a longer one, and a cut number is wrong.
  func wasCut(_ text: String) {
    guard text.utf8.contains(UInt8(ascii: ":")) else { return }
    log("a line was cut: send shorter ones, of at most 18 characters", text)
  }

  private func log(_ text: String, _ line: String) {
    device.context.counters.malformed += 1
    let now = Moment.now
    if let problemLogged, now < problemLogged + .seconds(3600) { return }
    problemLogged = now
    device.context.log.warning("\(text): \(Excerpt(line))", device.fields)
  }

  private func changed() {
    device.context.store.change(device.address) { $0.values = table.entries }
    device.describeValues()
  }

  // MARK: Removing

  /// - Returns: whether there was such a value.
  func remove(_ key: ValueKey) -> Bool {
    guard table.remove(key) else { return false }
    changed()
    return true
  }

  func removeUnseen(today: Int) {
    let before = table
    table.removeUnseen(today: today)
    if table != before { changed() }
  }

  /// Those that the device has at the gateway which owns it.
  func replace(with entries: [ValueKey: ValueTable.Entry]) {
    guard entries != table.entries else { return }
    table.replace(with: entries)
    changed()
  }

  // MARK: Sending

  /// The gateway stops: no line is waited for.
  func stop() { for echo in echoes { echo.end?(.sent) } }

  /// Sends `name:value`; the outcome is `applied` if the program sends the same line back, else `sent`.
  func execute(_ command: Command, reply: @escaping CommandReply) throws(RequestError) {
    let name = command.property
    guard let sent = profile.values?.sent, device.settings.values.on != nil else {
      throw RequestError(.invalid, "\(device.id) takes no values: uart_rx and uart_tx are not in use")
    }
    guard let key = NamedValue.key(of: name), ValueLine.key(of: key.description) == key else {
      throw RequestError(
        .invalid, "\(Excerpt(name)) is not the name of a value: a-z, 0-9 and _, at most 32 characters")
    }
    let text =
      switch command.value {
      case .string(let text): text
      case .integer, .number: String(decoding: command.value.bytes, as: UTF8.self)
      case .null, .bool, .array, .object: ""
      }
    let written = table.entries[key]?.written ?? key.description
    guard let line = ValueLine("\(written):\(text)"), line.key == key,
      !text.utf8.contains(where: { $0 < 0x20 })
    else {
      throw RequestError(
        .invalid, "\(Excerpt(command.value.payload)) is not a number or a short text without colons")
    }
    let channel = device.channels[sent]
    let value = try channel.property.value(ofCommand: .string("\(written):\(text)"))
    let echo = Echo(line)
    echoes.append(echo)
    let device = device
    @Sendable func report(_ outcome: Outcome?) {
      for (observer, _) in device.observers { observer.wrote(line.value, toValue: key, outcome) }
      if let outcome { reply(CommandResult(name, .utf8, requested: line.value, outcome)) }
    }
    @Sendable func end(_ outcome: Outcome) {
      echoes.removeAll { $0 === echo }
      report(outcome)
    }
    report(nil)
    let timeToLive = command.timeToLive.map { TimeToLive(seconds: $0, from: .now) }
    channel.writer?.execute(
      EncodedCommand(value, timeToLive: timeToLive) { outcome in
        switch outcome {
        case .pending: report(outcome)
        case .accepted, .sent:
          if echo.isReceived { return end(.applied(actual: line.value)) }
          let timer = device.context.loop.timer(after: Self.echoTimeout) { end(.sent) }
          echo.end = { outcome in
            timer.cancel()
            end(outcome)
          }
        case .applied, .adjusted, .read, .rejected, .deferred, .superseded, .failed, .timeout: end(outcome)
        }
      })
  }
}

extension ValueLine {
  /// Numbers are compared by their value: the program may write them otherwise.
  fileprivate func matches(_ other: ValueLine) -> Bool {
    guard key == other.key else { return false }
    if let number = value.doubleValue, let other = other.value.doubleValue { return number == other }
    return value == other.value
  }
}
