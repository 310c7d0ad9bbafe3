import Configuration
import EventLoop
import Findings
import GATT
import Log
import Radio

/// Micro:bits that are heard by radio: each becomes a device if an entry matches it, or while joining is permitted.
extension DeviceManager {
  /// The maximum number of senders that are devices: anybody in range can send as anybody.
  private nonisolated static let mostSenders = 64
  /// The maximum number of those whose five letters are equal, unless a request or an entry names more of them by their
  /// identifiers: anybody can make up serial numbers that have these letters.
  private nonisolated static let mostNamesakes = 4
  /// How long a sender that is no device is listed.
  private static let strangerLimit = Duration.seconds(600)

  var hasRoomForSender: Bool {
    registry.all.count { $0.address.radioSender != nil } < Self.mostSenders
  }

  /// The wired micro:bits that hear others; none while `radio.enabled` is false.
  package var receivers: [RadioReceivers.Status] { context.transmitter.receivers?.statuses ?? [] }

  /// The senders heard in the last ten minutes that are no devices, by their names.
  package var strangers: [BluetoothAddress] {
    radio.strangers.filter {
      .now < $0.value + Self.strangerLimit && registry.byAddress[$0.key] == nil
        && !store.record($0.key).requested.isRemoved
    }.keys.sorted { $0.value < $1.value }
  }

  /// What is known of the receivers, and of who is heard.
  var radioFindings: [Finding] {
    guard radio.configuration.isEnabled else { return [] }
    let found = receivers.isEmpty ? [.noReceiver] : receivers.map { $0.finding(at: .now) }
    let senders = strangers.compactMap(\.radioSender)
    return found + (senders.isEmpty ? [] : [.strangers(senders)])
  }

  /// Reads the receivers that the configuration names.
  func updateReceivers() {
    let wanted = context.isStopping ? Configuration.Radio() : configuration.radio
    guard wanted != radio.configuration else { return }
    context.transmitter.receivers?.stop()
    radio = RadioState(configuration: wanted)
    context.transmitter.receivers = nil
    if wanted.isEnabled {
      context.transmitter.receivers = RadioReceivers(wanted.ports, mayWrite: wanted.isSending) {
        [weak self] in
        self?.received($0, from: $1)
      } changed: { [weak self] in
        self?.receiversChanged()
      }
    }
    receiversChanged()
  }

  private func receiversChanged() {
    let canSend = context.transmitter.canSend
    for device in registry.all {
      guard let session = device.session.radioSession else { continue }
      session.interrupt()
      if device.description.isSentToByRadio != canSend { device.report(.description) }
    }
    engineChanged()
  }

  func received(_ packets: [RadioPacket], from port: String) {
    let now = Moment.now
    for packet in packets where radio.history.addIfNew(packet, from: port, at: now) {
      device(sending: packet)?.session.radioSession?.received(packet)
    }
  }

  private func device(sending packet: RadioPacket) -> Device? {
    guard let sender = packet.sender else { return nil }
    let address = BluetoothAddress(sender)
    if let device = registry.byAddress[address] ?? knownOtherwise(sender) { return device }
    guard hasRoom(for: sender) || isConfigured(address) else {
      noteStranger(address)
      return nil
    }
    // A line that was damaged on its way may name another sender, but hardly twice the same.
    if radio.strangers[address] != nil { join(packet, from: address) }
    if let device = makeDevice(address, Advertisement()) {
      radio.strangers[address] = nil
      return device
    }
    let mayJoin = !store.record(address).requested.isRemoved || permitJoin?.device == address
    if isMicrobit(packet, sender), mayJoin, !isPinnedElsewhere(address) { noteStranger(address) }
    return nil
  }

  private func namesakes(of sender: RadioSender) -> [Device] {
    registry.all.filter { $0.address.radioSender?.name == sender.name }
  }

  func hasNamesake(_ address: BluetoothAddress) -> Bool {
    address.radioSender.map { sender in
      sender.name != nil && namesakes(of: sender).contains { $0.address != address }
    } ?? false
  }

  private func hasRoom(for sender: RadioSender) -> Bool {
    sender.name == nil || namesakes(of: sender).count < Self.mostNamesakes
  }

  /// The device of a sender that is known in its other form: by its name before its program sent the serial number, or the
  /// reverse.
  private func knownOtherwise(_ sender: RadioSender) -> Device? {
    switch sender {
    case .receiver: return nil
    case .name:
      let known = namesakes(of: sender)
      return known.count == 1 ? known[0] : nil
    case .serial(let serial):
      guard let name = sender.name, let device = registry.byAddress[BluetoothAddress(.name(name))],
        radio.serials[name, default: serial] == serial
      else { return nil }
      radio.serials[name] = serial
      return device
    }
  }

  private func noteStranger(_ address: BluetoothAddress) {
    if radio.strangers[address] == nil {
      radio.strangers = radio.strangers.filter { .now < $0.value + Self.strangerLimit }
      guard radio.strangers.count < Self.mostSenders else { return }
      log.info(
        "heard by radio, but has not joined: permit joining, or add an entry",
        ["address": address, "name": address.radioSender?.name?.description ?? "unknown"])
      engineChanged()
    }
    radio.strangers[address] = .now
  }
}

/// What came from the receivers.
struct RadioState {
  /// The configuration that holds for the receivers.
  var configuration = Configuration.Radio()
  var history = RadioHistory()
  /// The serial numbers of devices that are known by their names.
  var serials: [MicrobitName: UInt32] = [:]
  /// When the senders that are no devices were heard last.
  var strangers: [BluetoothAddress: Moment] = [:]
}
