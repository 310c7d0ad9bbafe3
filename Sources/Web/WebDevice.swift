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
  /// The value's series in the history: one for a number, one for each field of a record; -1 for what is not a number.
  var series: [Int] = []
  /// Event streams that have not been sent this value.
  var waiting: StreamSet = 0
  /// Event streams that have not been sent this write.
  var waitingForWrite: StreamSet = 0
}

/// A device as the page shows it.
@LoopActor final class WebDevice: DeviceObserver {
  private(set) var device: DeviceDescription
  /// The states of the profile's properties, in their order.
  private(set) var properties: [PropertyState]
  /// The states of the values that the device's program names itself, by their keys.
  private(set) var values: [ValueKey: PropertyState] = [:]
  /// Attempts to connect since the device was connected last.
  private(set) var attempts = 0
  private(set) var connects = 0
  private(set) var disconnects = 0
  /// Commands that have ended, by the word of their outcome.
  private(set) var writes: [String: Int] = [:]
  /// Streams that have not been sent the device's description.
  var waiting: StreamSet = 0
  /// Streams that lack a value or a write.
  private(set) var waitingForValues: StreamSet = 0
  private unowned let state: WebState

  init(_ device: DeviceDescription, _ state: WebState) {
    self.device = device
    self.state = state
    properties = device.profile.properties.map { _ in PropertyState() }
    connects = device.isOnline ? 1 : 0
    waiting = state.streamSet
  }

  /// Continues for the same device with other properties.
  func adopt(_ old: WebDevice) {
    for (index, property) in old.device.profile.properties.enumerated() {
      if let new = device.profile.index(ofPropertyNamed: property.name),
        device.profile.properties[new].codec == property.codec
      {
        properties[new] = old.properties[index]
      } else {
        state.forget(old.properties[index])
      }
    }
    values = old.values
    (attempts, connects, disconnects) = (old.attempts, old.connects, old.disconnects)
    writes = old.writes
  }

  // MARK: Last values

  /// The last values of the profile's properties, in their order.
  var last: [LastValue] { state.engine.lastValues(of: device.address) }
  /// The last values that the device's program names itself.
  var lastNamed: [ValueKey: LastValue] { state.engine.lastNamedValues(of: device.address) }

  // MARK: Observer

  func reported(_ reading: Reading) {
    // The values of such a reading are reported, and shown, one by one.
    if reading.isValues { return }
    let property = device.settings.adjustedProfile.properties[reading.property]
    receive(reading, &properties[reading.property], isRecorded: property.kind == .state)
    if property.kind == .event { state.happened(device.id, property, reading) }
  }

  func reported(_ reading: ValueReading) {
    receive(reading.reading, &values[reading.key, default: PropertyState()], isRecorded: true)
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
    guard case .record(let fields) = reading.value else { return record(reading.value, 0, reading, &known) }
    for index in fields.indices {
      if let field = fields[index] { record(field, index, reading, &known) }
    }
  }

  private func record(_ value: Value, _ index: Int, _ reading: Reading, _ known: inout PropertyState) {
    guard let number = value.historyNumber, Float(number).isFinite else { return }
    while known.series.count <= index { known.series.append(-1) }
    if known.series[index] < 0 { known.series[index] = state.history.add() }
    state.history.set(known.series[index], number, at: .now)
  }

  func wrote(_ value: Value, to property: Int, _ outcome: Outcome?) {
    wrote(value, outcome, &properties[property])
    if let outcome, outcome != .pending {
      writes[outcome.word, default: 0] += 1
      if let reason = outcome.reason {
        state.add("\(device.profile.properties[property].name): \(outcome.word): \(reason)", device.id)
      }
    }
  }

  func wrote(_ value: Value, toValue key: ValueKey, _ outcome: Outcome?) {
    // A value that the device's program has never sent is not shown.
    guard device.values.contains(where: { $0.key == key }) else { return }
    wrote(value, outcome, &values[key, default: PropertyState()])
  }

  private func wrote(_ value: Value, _ outcome: Outcome?, _ known: inout PropertyState) {
    known.write = PropertyState.Write(requested: value, outcome: outcome, time: .now)
    known.waitingForWrite = state.streamSet
    waitingForValues = state.streamSet
    state.changed()
  }

  func changed(_ change: DeviceChange, _ new: DeviceDescription) {
    let old = device
    device = new
    if change == .handover { return desiredChanged(from: old) }
    waiting = state.streamSet
    if new.session != old.session, new.session == .connecting { attempts += 1 }
    if new.session == .live { attempts = 0 }
    if new.isOnline != old.isOnline {
      if new.isOnline { connects += 1 } else { disconnects += 1 }
      state.add(new.isOnline ? "connected" : "no longer connected", new.id)
    } else if let trouble = new.lastError, trouble != old.lastError {
      state.add(trouble, new.id)
    }
    if case .renamed(let before, _) = change { state.renamed(new.id, from: before) }
    for (key, value) in values where !new.values.contains(where: { $0.key == key }) {
      state.forget(value)
      values[key] = nil
    }
    state.changed()
  }

  private func desiredChanged(from old: DeviceDescription) {
    for (index, property) in device.profile.properties.enumerated()
    where device.desired(property).shown != old.desired(property).shown {
      properties[index].waitingForWrite = state.streamSet
      waitingForValues = state.streamSet
    }
    state.changed()
  }

  func detach(_ reason: DetachReason) { state.detached(self, reason) }

  /// The signal strength has changed, which no observer is told.
  func setRSSI(_ rssi: Int?) {
    guard let rssi, abs(rssi - (device.rssi ?? 0)) >= 3 else { return }
    waiting = state.streamSet
  }

  // MARK: Streams

  /// A new stream gets everything; one that has ended nothing more.
  func add(_ stream: StreamSet) { waiting |= stream }

  func remove(_ stream: StreamSet) {
    waiting &= ~stream
    clear(stream)
  }

  /// The description of the device, which includes the values, was sent.
  func clear(_ stream: StreamSet) {
    guard waitingForValues & stream != 0 else { return }
    waitingForValues &= ~stream
    for index in properties.indices {
      properties[index].waiting &= ~stream
      properties[index].waitingForWrite &= ~stream
    }
    for key in values.keys {
      values[key]?.waiting &= ~stream
      values[key]?.waitingForWrite &= ~stream
    }
  }

  /// What the stream lacks, as members of an object: `"temperature":[21,48]`.
  func takeValues(for stream: StreamSet) -> [UInt8] {
    var bytes: [UInt8] = []
    func append(_ property: Property, _ last: LastValue) {
      if !bytes.isEmpty { bytes.append(UInt8(ascii: ",")) }
      JSONValue.append(property.name, to: &bytes)
      bytes += ":[".utf8
      bytes += (last.published(property).map(property.codec.json) ?? .null).bytes
      bytes += ",\(last.count)]".utf8
    }
    for (index, last) in last.enumerated() where properties[index].waiting & stream != 0 {
      properties[index].waiting &= ~stream
      append(device.profile.properties[index], last)
    }
    let named = lastNamed
    for value in device.values where (values[value.key]?.waiting ?? 0) & stream != 0 {
      values[value.key]?.waiting &= ~stream
      if let last = named[value.key] { append(value.property, last) }
    }
    waitingForValues &= ~stream
    return bytes
  }

  /// The writes that the stream lacks, as data of events.
  func takeWrites(for stream: StreamSet) -> [JSONValue] {
    var writes: [JSONValue] = []
    func take(_ property: Property, _ known: inout PropertyState) {
      guard known.waitingForWrite & stream != 0 else { return }
      known.waitingForWrite &= ~stream
      writes.append([
        "device": .string(device.id.description), "property": .string(property.name),
        "desired": device.desired(property).shown.map(property.codec.json),
        "write": known.write?.json(property.codec),
      ])
    }
    for index in properties.indices { take(device.profile.properties[index], &properties[index]) }
    for value in device.values { take(value.property, &values[value.key, default: PropertyState()]) }
    return writes
  }
}

extension Value {
  /// The value as a point of a chart.
  var historyNumber: Double? { if case .bool(let bool) = self { bool ? 1 : 0 } else { doubleValue } }
}
