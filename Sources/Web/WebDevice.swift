import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

/// The event streams that something is still to be sent to, a bit for each.
typealias StreamSet = UInt32

/// What the page has of a property beyond its description and its last value, which is the engine's.
struct PropertyState: Sendable {
  /// The last command for it.
  struct Write: Sendable {
    let requested: Value
    /// The outcome of the command; nil: it is under way.
    let outcome: Outcome?
    let time: Timestamp
  }

  var write: Write?
  /// The series in the history of the value if it is a number, or of the numbers in a record by the places of their fields.
  var series: [Int: Int] = [:]
  /// Event streams that have not been sent this value.
  var waiting: StreamSet = 0
  /// Event streams that have not been sent this write.
  var waitingForWrite: StreamSet = 0
}

/// A device as the page shows it.
@LoopActor final class WebDevice: DeviceObserver {
  private(set) var device: DeviceDescription
  /// The states of ``DeviceDescription/allProperties``, in their order.
  private(set) var properties: [PropertyState] = []
  /// Attempts to connect since the device was connected last.
  private(set) var attempts = 0
  private(set) var connects = 0
  private(set) var disconnects = 0
  /// Commands that have ended, by the word of their outcome.
  private(set) var writes: [String: Int] = [:]
  /// Streams that have not been sent the device's description.
  var waiting: StreamSet = 0
  /// The signal strength that streams were told last.
  private var shownRSSI: Int?
  private var shownOwner: GatewayID?
  /// Streams that lack a value or a write.
  private(set) var waitingForValues: StreamSet = 0
  private unowned let state: WebState

  init(_ device: DeviceDescription, _ state: WebState) {
    self.device = device
    self.state = state
    connects = device.isOnline ? 1 : 0
    shownRSSI = device.rssi
    waiting = state.streamSet
    setProperties()
    for (index, property) in device.allProperties.enumerated() {
      // The command of an earlier run is told as those of this one.
      guard let value = device.desired(property).waitingValue else { continue }
      properties[index].write = PropertyState.Write(requested: value, outcome: .pending, time: .now)
    }
  }

  /// Continues for the same device with other properties.
  func adopt(_ old: WebDevice) {
    setProperties(from: old.properties, of: old.device)
    (attempts, connects, disconnects) = (old.attempts, old.connects, old.disconnects)
    writes = old.writes
  }

  /// Keeps the states of the properties that are the same as before.
  private func setProperties(from states: [PropertyState] = [], of before: DeviceDescription? = nil) {
    let all = device.allProperties
    properties = all.map { _ in PropertyState() }
    for (property, known) in zip(before?.allProperties ?? [], states) {
      if let index = all.firstIndex(where: { $0.name == property.name && $0.codec == property.codec }) {
        properties[index] = known
      } else {
        state.forget(known)
      }
    }
  }

  /// The last values of ``DeviceDescription/allProperties``; nothing is known any more of a device that has gone.
  var last: [LastValue] {
    let last = state.engine.lastValues(of: device.address)
    let isCurrent = state.devices[device.address] === self && last.count == properties.count
    return isCurrent ? last : properties.map { _ in LastValue() }
  }

  // MARK: Observer

  func reported(_ reading: Reading) {
    // The values of such a reading are reported, and shown, one by one.
    if reading.isOnlyValues { return }
    if let key = reading.key {
      guard let place = device.place(of: key) else { return }
      return receive(reading, &properties[place], isRecorded: reading.sequence != nil)
    }
    let property = device.profile.properties[reading.property]
    // What is reported again is no point of the history; what is read back of a property that can be set, is.
    let isRecorded = property.kind == .state && (reading.sequence != nil || property.isWritable)
    receive(reading, &properties[reading.property], isRecorded: isRecorded)
    if property.kind == .event { state.happened(device.id, property, reading) }
  }

  private func receive(_ reading: Reading, _ known: inout PropertyState, isRecorded: Bool) {
    if isRecorded { record(reading, &known) }
    let streams = state.streamSet
    guard streams != 0 else { return }
    known.waiting = streams
    waitingForValues = streams
    state.changed()
  }

  private func record(_ reading: Reading, _ known: inout PropertyState) {
    guard case .record(let fields) = reading.value else { return record(reading.value, 0, &known) }
    for case (let index, let field?) in fields.enumerated() { record(field, index, &known) }
  }

  private func record(_ value: Value, _ index: Int, _ known: inout PropertyState) {
    guard let number = value.historyNumber, Float(number).isFinite else { return }
    let series = known.series[index] ?? state.history.add()
    known.series[index] = series
    state.history.set(series, number, at: .now)
  }

  func commandChanged(_ value: Value, for name: String, _ outcome: Outcome?) {
    let end = outcome == .pending ? nil : outcome
    if let end { writes[end.word, default: 0] += 1 }
    // A value that the device's program has never sent is not shown.
    guard let place = device.allProperties.firstIndex(where: { $0.name == name }) else { return }
    properties[place].write = PropertyState.Write(requested: value, outcome: outcome, time: .now)
    properties[place].waitingForWrite = state.streamSet
    waitingForValues = state.streamSet
    state.changed()
    guard let end, let reason = end.reason else { return }
    state.add(
      "\(name): \(end.word): \(reason)", device.id, code: "not_set",
      about: [
        "property": .string(name), "value": device.allProperties[place].codec.json(value),
        "reason": .string(reason),
      ])
  }

  func changed(_ change: DeviceChange, _ new: DeviceDescription) {
    let old = device
    device = new
    if new.namedValues != old.namedValues { setProperties(from: properties, of: old) }
    if change == .handover { return desiredChanged(from: old) }
    shownRSSI = new.rssi
    waiting = state.streamSet
    if new.session != old.session, new.session == .connecting { attempts += 1 }
    if new.session == .live { attempts = 0 }
    if new.isOnline != old.isOnline {
      if new.isOnline { connects += 1 } else { disconnects += 1 }
      state.add(
        new.isOnline ? "connected" : "no longer connected", new.id,
        code: new.isOnline ? "connected" : "disconnected")
    } else if let trouble = new.trouble, trouble != old.trouble {
      let finding = trouble.finding(new.id.description, new.profile, new.settings.pairing)
      state.add(
        trouble.text(new.profile), new.id, code: finding.code,
        about: [
          "reason": finding.about["reason"].map(JSONValue.string),
          "cause": finding.about["cause"].map(JSONValue.string),
        ])
    }
    if case .renamed(let before, _) = change { state.renamed(new.id, from: before) }
    state.changed()
  }

  private func desiredChanged(from old: DeviceDescription) {
    for (index, property) in device.profile.properties.enumerated()
    where device.desired(property) != old.desired(property) {
      properties[index].waitingForWrite = state.streamSet
      waitingForValues = state.streamSet
    }
    state.changed()
  }

  func detach(_ reason: DetachReason) { state.detached(self, reason) }

  /// The signal strength has changed, which no observer is told.
  func setRSSI(_ rssi: Int?) {
    guard let rssi, abs(rssi - (shownRSSI ?? 0)) >= 3 else { return }
    shownRSSI = rssi
    waiting = state.streamSet
  }

  /// Another gateway uses the device, or no longer does, which no observer is told.
  func setOwner(_ owner: GatewayID?) {
    guard owner != shownOwner else { return }
    shownOwner = owner
    waiting = state.streamSet
  }

  // MARK: Streams

  /// The stream was sent the description of the device, which includes the values, or has ended.
  func clear(_ stream: StreamSet) {
    waiting &= ~stream
    guard waitingForValues & stream != 0 else { return }
    waitingForValues &= ~stream
    for index in properties.indices {
      properties[index].waiting &= ~stream
      properties[index].waitingForWrite &= ~stream
    }
  }

  /// What the stream lacks, as members of an object: `"temperature":[21,48]`.
  func takeValues(for stream: StreamSet) -> [UInt8] {
    var bytes: [UInt8] = []
    for (index, (property, last)) in zip(device.allProperties, last).enumerated()
    where properties[index].waiting & stream != 0 {
      properties[index].waiting &= ~stream
      if !bytes.isEmpty { bytes.append(UInt8(ascii: ",")) }
      JSONValue.append(property.name, to: &bytes)
      bytes += ":[".utf8
      bytes += (last.published(property).map(property.codec.json) ?? .null).bytes
      bytes += ",\(last.count)]".utf8
    }
    waitingForValues &= ~stream
    return bytes
  }

  /// The writes that the stream lacks, as data of events.
  func takeWrites(for stream: StreamSet) -> [JSONValue] {
    var writes: [JSONValue] = []
    for (index, property) in device.allProperties.enumerated()
    where properties[index].waitingForWrite & stream != 0 {
      properties[index].waitingForWrite &= ~stream
      let write: JSONValue = [
        "device": .string(device.id.description), "property": .string(property.name),
        "write": properties[index].write?.json(property.codec),
      ]
      writes.append(write.merging(desiredJSON(property)))
    }
    return writes
  }
}

extension Value {
  /// The value as a point of a chart.
  var historyNumber: Double? { if case .bool(let bool) = self { bool ? 1 : 0 } else { doubleValue } }
}
