import Configuration
import EventLoop
import GATT
import JSON
import Radio

/// The session of a micro:bit that a wired one hears by radio.
@LoopActor final class RadioSession: ListeningSession {
  private var clock = RadioClock()
  private var buttons = ButtonStates()

  override var radioSession: RadioSession? { self }
  /// Anybody in range can send as anybody.
  override class func hasRoom(in manager: DeviceManager) -> Bool { manager.hasRoomForSender }
  /// A packet is sent once.
  override var repeatsEvents: Bool { false }
  /// Bluetooth does not find it.
  override var needsScan: Bool { false }
  /// What follows within a second belongs to the packet before.
  override class var span: Duration { .seconds(1) }

  override func stop() {
    super.stop()
    context.transmitter.abandon(device.address)
  }

  override func ownerChanged(isNewHere: Bool, told: [HeardEvents.Event]?) {
    super.ownerChanged(isNewHere: isNewHere, told: told)
    // That one may send a newer value.
    if device.owner.isOther { context.transmitter.abandon(device.address) }
  }

  // MARK: Sending

  /// The longest text that MakeCode's radio sends, in bytes.
  private static let longestText = 19

  /// What sends a value to the micro:bit, as `zotut>servo:90`, until it is sent back.
  /// - Parameter reply: called once with the outcome, unless the micro:bit sends the value back before.
  func command(
    _ message: String, as key: ValueKey, reply: @escaping @LoopActor (Outcome) -> Void
  ) throws(RequestError) -> RadioCommand {
    let address = device.address
    guard let name = address.radioSender?.name else {
      throw RequestError(.invalid, "\(device.id) is a receiver, and takes no values")
    }
    let line = Array("\(name)>\(message)".utf8)
    guard line.count <= Self.longestText else {
      throw RequestError(
        .invalid, "\(Excerpt(message)) is too long: name, colon and value have at most 13 characters")
    }
    guard !isStopped else { throw RequestError("\(device.id) is disabled") }
    guard !context.hasNamesake(address) else {
      throw RequestError(
        "\(device.id) and another micro:bit have the same five letters: both would take it")
    }
    if let problem = context.transmitter.problem() { throw RequestError(problem) }
    return RadioCommand(target: .init(device: address, value: key), line: line, reply: reply)
  }

  // MARK: Receiving

  func received(_ packet: RadioPacket) {
    guard !isStopped else { return }
    // Micro:bits with the same name have clocks of their own.
    if case .serial = packet.sender, let time = packet.time, clock.received(time, at: .now) {
      context.log.info("it was reset", device.fields)
      // It may have another program.
      device.values.linkUp()
      buttons = ButtonStates()
    }
    let press = press(in: packet.message)
    let line = device.description.profile.values.map { device.channels[$0.received] }
    let before = device.record.offered
    wasHeard([press?.channel ?? line].compactMap { $0 })
    if device.record.offered != before { device.report(.description) }
    if let press {
      let isNews = !buttons.repeats(packet.message[2], of: press.channel.index, at: .now)
      if isNews { tell(press.value, of: press.channel, packet) }
    } else if let line {
      let message = device.values.accept(FrameAssembler.Frame(bytes: packet.message), name: packet.valueName)
      line.reportReading(
        of: .text(String(decoding: packet.message, as: UTF8.self)), isOnlyValues: message.isOnlyValues,
        senderTime: packet.time)
      device.values.deliver(message, senderTime: packet.time)
    }
  }

  /// A press of a button: the program sends `a:1`, 2 for a long one, and 0 at its end, as the button service does.
  private func press(in message: [UInt8]) -> (channel: Channel, value: Value)? {
    guard message.count == 3, message[1] == UInt8(ascii: ":"),
      (UInt8(ascii: "0")...UInt8(ascii: "2")).contains(message[2]),
      let channel = device.channels.first(where: { $0.property.source?.prefix == [message[0] | 0x20] }),
      !isValue([message[0]]),
      let value = try? channel.property.codec.decode([message[2] - UInt8(ascii: "0")])
    else { return nil }
    return (channel, value)
  }

  /// Whether its program has a value of this name: it has sent other numbers as well, or its entry describes it.
  private func isValue(_ name: [UInt8]) -> Bool {
    let key = ValueKey(String(decoding: name, as: UTF8.self).lowercased())
    return device.description.namedValues.contains { $0.key == key && $0.isConfirmed }
      || key.map { device.settings.values.on?[$0] != nil } == true
  }

  /// Two gateways know a press as the same one by the sender's time; without that, its owner tells it.
  private func tell(_ value: Value, of channel: Channel, _ packet: RadioPacket) {
    guard let source = channel.property.source, let time = packet.time else {
      return channel.reportReading(of: value)
    }
    let bytes = (0..<4).map { UInt8(truncatingIfNeeded: time >> (8 * $0)) } + packet.message
    guard events.heard(source, bytes, packetID: nil, at: .now).hasEvents else { return }
    heardEvents([HeardEvents.Content(property: channel.index, value: value, senderTime: time)], of: source)
  }
}
