import Configuration
import JSON
import MQTT

@testable import GATT
@testable import Log

/// The text of a UUID, an address, an id, an area.
@Sendable func checkName(_ bytes: [UInt8]) {
  let text = String(decoding: bytes, as: UTF8.self)
  if let uuid = BluetoothUUID(text) {
    expect(BluetoothUUID(uuid.description) == uuid, "another UUID: \(uuid)")
    expect(text.utf8.count != 36 || uuid.description == text.lowercased(), "another UUID: \(uuid)")
  }
  if let address = BluetoothAddress(text) {
    expect(address.description == text.uppercased(), "another address: \(address)")
    expect(BluetoothAddress(compact: address.compact) == address, "another address: \(address)")
  }
  if let compact = BluetoothAddress(compact: text) {
    expect(compact.compact == text.lowercased(), "another address: \(compact)")
  }
  if let content = Hexadecimal.bytes(text) {
    expect(Hexadecimal.text(content) == text.lowercased(), "other bytes: \(content)")
  }
  if let id = try? DeviceID(text) {
    expect(TopicName("microbit/\(id)/info") != nil, "no topic")
  }
  expect(GatewayID(GatewayID(hostName: text).description) != nil, "a host without an id")
  if let word = TopicWord.similar(to: text) { expect((try? DeviceID(word)) != nil, "\(word) is no id") }
  if let area = AreaName(text) {
    expect(AreaName(area.description) == area, "another area: \(area)")
  }
  if let information = DeviceInformation.text(bytes) { expect(!information.utf8.contains(0), "a zero byte") }
  if let format = PresentationFormat(bytes) { expectVisible("\(format)") }
  expectVisible("\(Excerpt(bytes))")
  expect(nearest(to: text, among: []) == nil, "a word of none")
  _ = nearest(to: text, among: ["temperature", "period"])
}

/// Text of unknown origin in the log.
@Sendable func checkLog(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let (message, value) = (input.text(), String(decoding: input.remainder(), as: UTF8.self))
  let fields: LogFields = ["device": value, "name": message]
  let line = LogLine(level: .warning, component: "fuzz", message: message, fields: fields)
  let text = line.text()
  expect(text.count <= LogLine.limit, "too long")
  expectVisible(String(decoding: text, as: UTF8.self))
  expect(String(validating: text, as: UTF8.self) != nil, "cut within a character")
  let json = line.json(time: "2026-11-22T10:30:15.250Z")
  expect(json.count <= LogLine.limit, "too long")
  guard case .object(let object) = try? JSONParser.parse(json) else { fatalError("not a JSON object") }
  expect(object.names.starts(with: ["time", "level", "component", "message"]), "other names")
  let entry = line.journalEntry(text)
  expect(entry.filter { $0 == UInt8(ascii: "\n") }.count == 4, "other lines than those of the entry")
}
