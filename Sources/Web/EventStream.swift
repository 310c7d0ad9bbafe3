import Configuration
import EventLoop
import JSON
import Log

/// What one client of `/api/events` gets: first everything, then what changes. It keeps what is still to be told, not
/// the events: a client that reads slowly gets the newest values.
@LoopActor final class EventStream: BodySource {
  /// The most values of events that wait for the client.
  static let mostHappened = 64
  private static let mostRemoved = 256
  /// The most bytes of an event with values, and of what is made at a time.
  private static let size = 16 << 10
  private static let heartbeat = Duration.seconds(15)

  /// The stream's own bit in ``WebState/streamSet``.
  let bit: StreamSet
  private unowned let state: WebState
  /// Whether its client may change nothing.
  let isReadOnly: Bool
  var isEndless: Bool { true }
  /// There may be something to send.
  var onReady: () -> Void = {}
  /// The stream is to end: the client then connects again.
  var onClose: () -> Void = {}
  var needsGateway = true
  private var greeting = Array("retry: 2000\n\n".utf8)
  private var isComplete = false
  private var removedIDs: [String] = []
  private var pending: [JSONValue] = []
  private var missed = 0
  private var lastSent = Moment.now

  init(_ bit: StreamSet, _ state: WebState, isReadOnly: Bool) {
    self.bit = bit
    self.state = state
    self.isReadOnly = isReadOnly
  }

  func happened(_ data: JSONValue) {
    pending.append(data)
    guard pending.count > Self.mostHappened else { return }
    pending.removeFirst()
    missed += 1
  }

  func removed(_ id: DeviceID) {
    guard removedIDs.count < Self.mostRemoved else { return onClose() }
    removedIDs.append(id.description)
  }

  func tick() { if lastSent + Self.heartbeat < .now { onReady() } }

  func end() { state.remove(self) }

  func next() -> [UInt8]? {
    var bytes = greeting
    greeting = []
    if needsGateway {
      needsGateway = false
      append("gateway", state.gatewayJSON(isReadOnly: isReadOnly), to: &bytes)
    }
    for id in removedIDs { append("removed", ["id": .string(id)], to: &bytes) }
    removedIDs = []
    appendDevices(to: &bytes)
    if missed > 0 { append("missed", ["happened": .integer(missed)], to: &bytes) }
    for data in pending { append("happened", data, to: &bytes) }
    (pending, missed) = ([], 0)
    let now = Moment.now
    if bytes.isEmpty, lastSent + Self.heartbeat < now { bytes += ":\n\n".utf8 }
    if !bytes.isEmpty { lastSent = now }
    return bytes
  }

  private func appendDevices(to bytes: inout [UInt8]) {
    for device in state.devices.values where device.waiting & bit != 0 {
      device.clear(bit)
      append("device", state.json(device), to: &bytes)
      guard bytes.count < Self.size else { return }
    }
    if !isComplete {
      isComplete = true
      append(
        "ready", ["devices": .integer(state.devices.count), "time": .string(Timestamp.now.description)],
        to: &bytes)
    }
    var values: [UInt8] = []
    for device in state.devices.values where device.waitingForValues & bit != 0 {
      for write in device.takeWrites(for: bit) { append("write", write, to: &bytes) }
      let members = device.takeValues(for: bit)
      if members.isEmpty { continue }
      if !values.isEmpty { values.append(UInt8(ascii: ",")) }
      JSONValue.append(device.device.id.description, to: &values)
      values += ":{".utf8
      values += members
      values.append(UInt8(ascii: "}"))
      if values.count > Self.size { break }
    }
    guard !values.isEmpty else { return }
    bytes += "event: values\ndata: {\"time\":\"\(Timestamp.now)\",\"values\":{".utf8
    bytes += values
    bytes += "}}\n\n".utf8
  }

  private func append(_ name: String, _ data: JSONValue, to bytes: inout [UInt8]) {
    bytes += "event: \(name)\ndata: ".utf8
    bytes += data.bytes
    bytes += "\n\n".utf8
  }
}
