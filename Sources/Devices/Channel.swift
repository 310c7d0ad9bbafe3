import BlueZ
import EventLoop
import Findings
import GATT
import Log

/// One property of one device: its characteristic while there is a link, its last value, and its writes.
@LoopActor final class Channel {
  let index: Int
  private(set) var property: Property
  /// The property's characteristic; nil without a link, or if the link does not offer it.
  private(set) var characteristic: Characteristic?
  /// Why the link does not offer the property, if its profile is the user's, or why it cannot be used.
  private(set) var lack: String?
  /// The last value that was received or read in this run.
  private(set) var last = LastValue()
  /// Carries out the property's writes; nil if it cannot be written.
  private(set) var writer: PropertyWriter?
  private(set) lazy var reader = PropertyReader(for: self, of: device)
  /// Why a writable property could not be read, as it was logged last.
  private var unreadReason: String?
  /// Logs values that cannot be decoded.
  private var malformedLog = Hourly()
  /// The error of the last value that could not be decoded.
  private var malformedReason: String?
  /// Whether another program has acquired the notifications: the value is read instead.
  var areNotificationsTaken = false
  /// bluetoothd notifies what is read on this link: a read is received as a notification.
  private(set) var areReadsNotified = false
  /// Joins values that arrive in several notifications; nil: each arrives in one.
  private var frames: FrameReceiver?
  /// Whether the property's texts are messages that may have values of the program.
  private let hasLines: Bool
  unowned let device: Device

  var context: DeviceContext { device.context }
  /// Whether a value has come in this run, or round, or none is to be waited for: the peripheral sends none by itself.
  var hasFirstValue: Bool {
    guard characteristic != nil, property.isNotifying, property.kind == .state || hasLines else {
      return true
    }
    return !last.isAwaited
  }
  /// Why no value that has come fits the profile; nil: one does, or none has come.
  var misfit: String? { last.value == nil && last.count == 0 ? malformedReason : nil }
  /// Whether the value is read at an interval, and not notified.
  var isPolled: Bool {
    property.poll != nil || areNotificationsTaken || characteristic.map { !$0.flags.notifies } ?? false
  }
  /// Whether bluetoothd notifies a read of the event, as if the event had happened.
  var notifiesReadAsEvent: Bool { areReadsNotified && property.kind == .event }

  init(index: Int, of device: Device) {
    self.index = index
    property = device.description.profile.properties[index]
    self.device = device
    hasLines = device.description.profile.values?.received == index
    frames = property.frame.map { delimiter in
      FrameReceiver(delimiter: delimiter) { [weak self] in self?.frameArrived($0) }
    }
    if property.isWritable { writer = PropertyWriter(for: self, of: device) }
  }

  /// - Returns: whether the offset has changed.
  func replaceProperty(with property: Property) -> Bool {
    let hasNewOffset = property.offset != self.property.offset
    self.property = property
    return hasNewOffset
  }

  /// Reports the last value of a state again, unless the present program lacks the property.
  func reportAgain() {
    guard let value = last.published(property), let time = last.time, property.kind == .state,
      device.description.propertyNames.contains(property.name)
    else { return }
    passOn(Reading(property: index, value: value, time: time, sequence: nil))
  }

  /// Continues for the same property of the device, which has other properties now.
  func adopt(_ old: Channel) { if old.property.codec == property.codec { last = old.last } }

  /// The next value counts as the first one.
  func beginRound() { last.isAwaited = true }

  /// The value as it is published, with what is added to a number.
  func withOffset(_ value: Value) -> Value { value.adding(property.offset) }

  // MARK: The link

  /// Sets the characteristic on a new link, or after the peripheral has changed its services.
  func use(_ resolution: Resolution) {
    characteristic = resolution.characteristics[index]
    lack = device.description.profile.isBuiltIn ? nil : resolution.lacks[index]
    areReadsNotified = false
  }

  /// The link has ended, or the characteristic was removed.
  func linkDown() {
    frames?.linkDown()
    characteristic = nil
    writer?.linkDown()
  }

  /// The session is live: carries out waiting commands, or fails them if the link does not offer the property.
  func linkUp() {
    if characteristic == nil {
      writer?.abandon(reason: notOffered)
    } else {
      if lack != nil { context.log.notice("\(property.name) can be used again", device.fields) }
      lack = nil
      writer?.linkUp()
    }
  }

  /// The property could not be read or subscribed to: it is not used until it is included again.
  func exclude(because error: CentralError) {
    if lack != "\(error)" {
      context.log.warning("\(property.name) cannot be used: \(error)", device.fields)
    }
    characteristic = nil
    lack = "\(error)"
  }

  /// Uses the characteristic of an excluded property again.
  func include(_ characteristic: Characteristic?) { self.characteristic = characteristic }

  /// The value of a writable property could not be read on a new link: it can be written all the same.
  func couldNotBeRead(because reason: String) {
    guard reason != unreadReason else { return }
    unreadReason = reason
    context.log.warning("\(property.name) cannot be read: \(reason)", device.fields)
  }

  /// The value is notified from now on.
  func subscribed() { (areReadsNotified, areNotificationsTaken) = (true, false) }

  // MARK: Values

  /// Called for every notification, and with the bytes of a read.
  func arrived(_ bytes: [UInt8]) {
    // What arrives on a link that is being ended is dropped.
    guard device.state.isReceiving else { return }
    if let frames { frames.append(bytes) } else { valueArrived(bytes) }
  }

  private func frameArrived(_ frame: FrameAssembler.Frame) {
    if frame.isTooLong {
      countMalformed(
        "\(property.name) is longer than \(FrameAssembler.longest) bytes: it is cut into several")
    }
    guard hasLines else { return valueArrived(frame.bytes) }
    guard let text = decodeOrCount(frame.bytes) else { return }
    let message = device.values.accept(frame)
    reportReading(of: text, isOnlyValues: message.isOnlyValues)
    device.values.deliver(message)
  }

  private func valueArrived(_ bytes: [UInt8]) {
    if let value = decodeOrCount(bytes) { reportReading(of: value) }
  }

  /// - Returns: nil: there is no value, or it is malformed, and counted.
  private func decodeOrCount(_ bytes: [UInt8]) -> Value? {
    do throws(CodecError) {
      return try decode(bytes)
    } catch {
      guard error != .absent else { return nil }
      malformedReason = "\(error)"
      countMalformed("ignoring a malformed value of \(property.name): \(error)")
      return nil
    }
  }

  /// Decodes what the peripheral has sent. A text is published as it is, and might be shown on a terminal: zeros and line
  /// ends behind it are left out, and with any other control characters it is no value.
  private func decode(_ bytes: [UInt8]) throws(CodecError) -> Value {
    let value = try property.codec.decode(bytes)
    guard case .text(var text) = value, text.hasControlCharacters else { return value }
    text = text.dropping(["\0", "\n", "\r"])
    guard !text.hasControlCharacters else { throw .controlCharacters(bytes) }
    return .text(text)
  }

  /// Counts a malformed value, and logs it, at most once an hour: a device may send many, and valid values in between. Of
  /// the anonymous devices of a profile one stands for all.
  private func countMalformed(_ line: String) {
    context.counters.malformed += 1
    guard malformedLog.useIfDue() else { return }
    let kind = "\(device.description.profile.name).\(property.name)"
    let isNews = !device.isAnonymous || context.malformedLog[kind, default: Hourly()].useIfDue()
    context.log.write(isNews ? .warning : .debug, line, device.fields)
  }

  /// A value was notified, read on request or at an interval, or heard: it is a reading.
  func reportReading(of value: Value, isOnlyValues: Bool = false, senderTime: UInt32? = nil) {
    let time = Timestamp.now
    if isOnlyValues { last.reportedValues() } else { last.reported(value, at: time) }
    device.session.readingReceived(of: index)
    let value = withOffset(value)
    device.noteForNumbering(value, of: index)
    passOn(countedReading(of: value, at: time, isOnlyValues: isOnlyValues, senderTime))
  }

  /// An event that was heard, and that a gateway tells: see ``DeviceObserver/told(_:isElsewhere:)``.
  func tell(_ value: Value, at time: Timestamp, isElsewhere: Bool, senderTime: UInt32?) {
    last.reported(value, at: time)
    let reading = countedReading(of: withOffset(value), at: time, senderTime)
    device.tellObservers { $0.told(reading, isElsewhere: isElsewhere) }
  }

  private func countedReading(
    of value: Value, at time: Timestamp, isOnlyValues: Bool = false, _ senderTime: UInt32?
  ) -> Reading {
    let sequence = device.nextSequence(at: time)
    if Logger.isEnabled(.debug) {
      context.log.debug(
        "reading",
        [
          "device": device.id, "address": device.address, "property": property.name, "value": value,
          "sequence": sequence,
        ])
    }
    return Reading(
      property: index, value: value, time: time, sequence: sequence, isOnlyValues: isOnlyValues,
      senderTime: senderTime)
  }

  /// Tells the observers, and the link if the value is the period of the readings that show that it is alive. Called for every
  /// reading.
  private func passOn(_ reading: Reading) {
    if case .integer(let milliseconds) = reading.value, index == device.description.profile.alive?.period {
      device.session.linkSession?.feed(.period(.milliseconds(milliseconds)))
    }
    device.tellObservers { $0.reported(reading) }
  }

  /// The value in a frame that was heard; nil: it has none, or it is malformed, and counted.
  func heardValue(in frame: [UInt8]) -> Value? {
    guard let bytes = property.source?.value(in: frame, width: property.codec.width) else { return nil }
    return decodeOrCount(bytes)
  }

  // MARK: Reading

  /// Reads the value, without reporting it.
  func readEncoded(on central: Central) async -> ReadResult {
    guard let characteristic else { return .failure(.linkLost) }
    return readResult(of: await central.read(characteristic))
  }

  func readResult(of bytes: Result<[UInt8], CentralError>) -> ReadResult {
    switch bytes {
    case .failure(let error): return .failure(WriteFailure(error))
    case .success(let bytes):
      do throws(CodecError) {
        return .success(EncodedValue(try decode(bytes), try writtenForm(of: bytes)))
      } catch {
        return .failure(.failed(reason: "\(error)"))
      }
    }
  }

  /// The bytes that a write of this value would have: a device may hold it in others, such as 21.50 for 21.5, or a text with
  /// zeros behind it.
  private func writtenForm(of bytes: [UInt8]) throws(CodecError) -> [UInt8] {
    var value = try property.codec.decode(bytes)
    if case .text(let text) = value { value = .text(text.dropping(["\0"])) }
    return (try? property.codec.encode(value)) ?? bytes
  }

  /// Why commands and reads cannot be carried out, not even after waiting; nil if they can.
  var obstacle: String? { device.obstacle ?? (device.isLive && characteristic == nil ? notOffered : nil) }

  private var notOffered: String {
    "the device does not offer \(property.name)" + (lack.map { ": \($0)" } ?? "")
  }

  /// The value that was read after a write or on a new link. Published without a sequence number, unless bluetoothd
  /// notifies it as well: then it is a reading already.
  func readBack(_ value: Value) {
    let time = Timestamp.now
    last.readBack(value, at: time)
    // What can be written has no offset.
    if !areReadsNotified { passOn(Reading(property: index, value: value, time: time, sequence: nil)) }
  }

  /// The characteristic holds these bytes again.
  func wasRestored(to bytes: [UInt8]) {
    if let held = try? decode(bytes), held != last.value { readBack(held) }
  }
}

extension String {
  /// The text without these at its end.
  func dropping(_ end: [Unicode.Scalar]) -> String {
    var text = self
    while let last = text.unicodeScalars.last, end.contains(last) { text.unicodeScalars.removeLast() }
    return text
  }
}
