import Configuration
import EventLoop
import GATT
import JSON
import Log

/// The values of the program of one device: what it sends in its messages, and what is sent to it.
@LoopActor final class DeviceValues {
  /// How long the program may take to send a value back.
  private static let echoTimeout = Duration.seconds(2)

  private var table: ValueTable
  /// The last values in this run.
  private(set) var last: [ValueKey: LastValue] = [:]
  /// What the configuration and requests say about the values; nil: values are off.
  private var settings: [ValueKey: ValueDescription]? {
    didSet {
      columns = ProgramValue.Columns(ofName: (settings ?? [:]).compactMapValues(\.columns))
      columns.ofMessage = ValueKey(ValueSettings.columns).flatMap { columns.ofName.removeValue(forKey: $0) }
    }
  }
  private var columns = ProgramValue.Columns()
  private var echoes: [Echo] = []
  /// Logs each kind of misfit.
  private var logged: [Misfit: Hourly] = [:]
  private unowned let device: Device

  /// A value that was sent, and may come back.
  @LoopActor private final class Echo {
    let value: ProgramValue
    var isReceived = false
    /// Ends the command; nil until it was written.
    var end: ((Outcome) -> Void)?
    /// Tells the front ends that the value is sent, with nil, and then what becomes of the command.
    let tell: (Outcome?) -> Void

    init(_ value: ProgramValue, tell: @escaping (Outcome?) -> Void) {
      self.value = value
      self.tell = tell
    }
  }

  init(of device: Device) {
    self.device = device
    table = ValueTable(device.record.valueTable)
    settingsChanged()
  }

  /// Continues for the same device with other properties.
  func adopt(_ old: DeviceValues) { last = old.last }

  func settingsChanged() { settings = device.settings.values.on }

  private var profile: Profile { device.description.profile }

  /// The values that are published; none if the entry switches values off, or the profile has none.
  var described: [NamedValue] {
    guard let line = profile.values.map({ profile.properties[$0.received] }), let settings else {
      return []
    }
    return table.entries.sorted { $0.key < $1.key }.map {
      NamedValue($0.key, $0.value, settings[$0.key], of: line)
    }
  }

  // MARK: Receiving

  func linkUp() { table.linkUp() }

  /// Whether the values of this name are known as numbers.
  private func isNumber(_ key: ValueKey) -> Bool {
    table.entries[key]?.isNumber == true || settings?[key]?.isNumber == true
  }

  /// - Parameter name: the name in the message, if a packet has it apart from its number.
  /// - Returns: the values in the message that are passed on, and whether it is nothing else.
  func accept(_ frame: FrameAssembler.Frame, name: [UInt8]? = nil) -> ProgramValue.Message {
    guard let settings else { return ProgramValue.Message() }
    var message = ProgramValue.values(in: frame.bytes, columns, name: name) { isNumber($0) }
    // JSON has an end of its own.
    if frame.isCut, frame.bytes.first != UInt8(ascii: "{") {
      if !message.values.isEmpty { count(.cut, String(decoding: frame.bytes, as: UTF8.self)) }
      return ProgramValue.Message()
    }
    if message.hasOtherColumns { count(.otherColumns, String(decoding: frame.bytes, as: UTF8.self)) }
    let before = table.changes
    let (now, today) = (Moment.now, Timestamp.now.day)
    let all = message.values.count
    message.values.removeAll { value in
      let isNumber = settings[value.name.key]?.isNumber == true
      switch table.receive(value, isNumber: isNumber, at: now, today: today) {
      case .accepted: return false
      case .sameKey(let other): count(.sameKey, "\(other), not \(value.name.written)")
      case .noNumber: count(.noNumber, "\(value.name.written): \(value.value)")
      case .otherUnit: count(.otherUnit, "\(value.name.written): \(value.value) \(value.unit ?? "")")
      case .tooMany: count(.tooMany, value.name.written)
      }
      return true
    }
    if message.values.count < all { message.isWhole = false }
    if table.changes != before { changed() }
    return message
  }

  /// The values of a message that was received become last values and readings.
  func deliver(_ message: ProgramValue.Message, senderTime: UInt32? = nil) {
    guard let settings else { return }
    for value in message.values {
      let (key, time) = (value.name.key, Timestamp.now)
      let published = value.value.adding(settings[key]?.adjustment.offset)
      last[key, default: LastValue()].reported(value.value, at: time)
      report(key, published, at: time, sequence: device.nextSequence(at: time), senderTime)
      for echo in echoes where echo.value.matches(value) && !echo.isReceived {
        echo.isReceived = true
        echo.end?(.applied(actual: echo.value.value))
        break
      }
    }
  }

  /// Reports the last values again.
  /// - Parameter isIncluded: which ones.
  func reportAgain(where isIncluded: (NamedValue) -> Bool = { _ in true }) {
    for value in device.description.namedValues where isIncluded(value) {
      if let last = last[value.key], let time = last.time, let published = last.published(value.property) {
        report(value.key, published, at: time)
      }
    }
  }

  /// - Parameter sequence: nil for a last value that is reported again: it is not a reading.
  private func report(
    _ key: ValueKey, _ value: Value, at time: Timestamp, sequence: UInt64? = nil, _ senderTime: UInt32? = nil
  ) {
    let reading = Reading(
      property: profile.values?.received ?? 0, key: key, value: value, time: time, sequence: sequence,
      senderTime: senderTime)
    device.tellObservers { $0.reported(reading) }
  }

  /// Why what a program sends is no value.
  private enum Misfit: String {
    case sameKey = "two values of its program have the same name in topics"
    case noNumber = "a value of its program that is a number came as a text"
    case otherUnit = "a value of its program came in another unit than before"
    case tooMany = "its program sends too many names of values"
    case otherColumns = "its program sends more or fewer numbers than \"columns\" in its entry names"
    case cut =
      "a message may be cut, as a micro:bit V1 drops what is beyond 20 characters: send shorter ones, as lines"
  }

  /// Counts a misfit, and logs one line an hour for each kind.
  private func count(_ misfit: Misfit, _ text: String) {
    device.context.counters.malformed += 1
    guard logged[misfit, default: Hourly()].useIfDue() else { return }
    device.context.log.warning("\(misfit.rawValue): \(Excerpt(text))", device.fields)
  }

  private func changed() {
    last = last.filter { table.entries[$0.key] != nil }
    device.context.store.change(device.address) { $0.valueTable = table.entries }
    let described = described
    guard described != device.description.namedValues else { return }
    device.description.namedValues = described
    device.report(.description)
  }

  // MARK: Removing

  func remove(_ key: ValueKey) -> Bool {
    guard table.remove(key) else { return false }
    changed()
    return true
  }

  func removeUnseen(today: Int, uncounted: Int) {
    let before = table
    table.removeUnseen(today: today, uncounted: uncounted)
    if table != before { changed() }
  }

  /// Takes over the values that the device has at the gateway which owns it.
  func replace(with entries: [ValueKey: ValueTable.Entry]) {
    guard entries != table.entries else { return }
    table.replace(with: entries)
    changed()
  }

  // MARK: Sending

  /// The gateway stops: no value is waited for.
  func stop() { for echo in echoes { echo.end?(.sent) } }

  /// Sends `name:value`; the outcome is `applied` if the program sends the same value back, else `sent`.
  func execute(_ command: Command, reply: @escaping CommandReply) throws(RequestError) {
    let (device, name) = (device, command.property)
    let (channel, radio) = (profile.values?.sent.map { device.channels[$0] }, device.session.radioSession)
    guard channel != nil || radio != nil, settings != nil else {
      throw RequestError(.invalid, "\(device.id) takes no values: uart_rx and uart_tx are not in use")
    }
    let (value, message) = try value(of: command)
    let echo = Echo(value) { outcome in
      device.tellObservers { $0.commandChanged(value.value, for: name, outcome) }
      if let outcome { reply(CommandResult(name, .utf8, requested: value.value, outcome)) }
    }
    if let radio {
      try sendByRadio(message, radio, echo)
    } else if let channel {
      try sendOverLink(message, channel, command.timeToLive, echo)
    }
  }

  /// - Returns: the value as the program may send it back, and the message with it.
  private func value(of command: Command) throws(RequestError) -> (ProgramValue, message: String) {
    guard let key = NamedValue.key(of: command.property) else {
      throw RequestError(
        .invalid,
        "\(Excerpt(command.property)) is not the name of a value: letters in lower case, digits and _, at most 32 characters"
      )
    }
    let text =
      switch command.value {
      case .string(let text): text.dropping(["\n", "\r"])
      case .integer, .number, .bool: String(decoding: command.value.bytes, as: UTF8.self)
      case .null, .array, .object: ""
      }
    let written = table.entries[key]?.written ?? key.description
    let message = "\(written):\(text)"
    let parsed = ProgramValue.values(in: Array(message.utf8), name: Array(written.utf8)).values
    let isNumber = isNumber(key)
    guard let value = parsed.first, parsed.count == 1, value.name.key == key,
      !text.utf8.contains(where: { $0 < 0x20 }), !isNumber || value.value.doubleValue?.isFinite == true
    else {
      _ = try Property.json(text)
      let hasBlank = written.utf8.contains(UInt8(ascii: " "))
      let expected = isNumber || hasBlank ? "a number" : "a number or a short text without colons"
      throw RequestError(.invalid, "\(Excerpt(command.value.payload)) is not \(expected)")
    }
    return (value, message)
  }

  private func sendByRadio(_ message: String, _ radio: RadioSession, _ echo: Echo) throws(RequestError) {
    let transmitter = device.context.transmitter
    let command = try radio.command(message, as: echo.value.name.key) { self.finish(echo, $0) }
    echoes.append(echo)
    echo.end = { outcome in
      echo.isReceived = transmitter.echoed(command.target)
      if echo.isReceived { self.finish(echo, outcome) }
    }
    echo.tell(nil)
    transmitter.send(command)
  }

  private func sendOverLink(
    _ message: String, _ channel: Channel, _ timeToLive: TimeToLive?, _ echo: Echo
  ) throws(RequestError) {
    let value = try channel.property.value(ofCommand: .string(message))
    echoes.append(echo)
    echo.tell(nil)
    channel.writer?.execute(
      EncodedCommand(value: value, timeToLive: timeToLive, isNamedValue: true) { [self] outcome in
        switch outcome {
        case .pending: echo.tell(outcome)
        case .accepted, .sent:
          if echo.isReceived { return finish(echo, .applied(actual: echo.value.value)) }
          let timer = loop.timer(after: Self.echoTimeout) { self.finish(echo, .sent) }
          echo.end = { outcome in
            timer.cancel()
            self.finish(echo, outcome)
          }
        case .applied, .adjusted, .read, .rejected, .deferred, .superseded, .failed, .timeout:
          finish(echo, outcome)
        }
      })
  }

  private func finish(_ echo: Echo, _ outcome: Outcome) {
    // The closure has the echo in it.
    echo.end = nil
    echoes.removeAll { $0 === echo }
    echo.tell(outcome)
  }
}

extension ProgramValue {
  /// Numbers are compared by their value: the program may write them otherwise. `true` is the same as a text and in JSON.
  fileprivate func matches(_ other: ProgramValue) -> Bool {
    guard name.key == other.name.key else { return false }
    if let number = value.doubleValue, let other = other.value.doubleValue { return number == other }
    switch (value, other.value) {
    case (.text(let text), .bool(let bool)), (.bool(let bool), .text(let text)): return text == "\(bool)"
    case (let value, let other): return value == other
    }
  }
}
