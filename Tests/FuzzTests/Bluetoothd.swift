import Bridge
import CDBus
import EventLoop
import GATT
import JSON

@testable import BlueZ
@testable import DBus

/// Signals of bluetoothd, each made of a few bytes: written and read by libdbus, then followed.
@Sendable func checkDBus(_ bytes: [UInt8]) { onLoop { followSignals(bytes) } }

@LoopActor private func followSignals(_ bytes: [UInt8]) {
  var input = Input(bytes)
  var tree = ObjectTree(adapter: Names.adapter)
  let signals = ByteSignals(of: "Value", on: BlueZName.characteristic)
  signals.setSender(Names.bluetoothd)
  signals.listen(to: Names.paths[3]) { _ in }
  while !input.isEmpty {
    let sent = input.signal()
    guard let received = Received(sent) else { continue }
    let signal = DBusSignal(received.message)
    expect(signal.arguments == sent.arguments, "\(sent.arguments): received as \(signal.arguments)")
    _ = signals.deliver(received.message)
    if let events = BlueZEvent.objects(signal.arguments) {
      for event in events { apply(event, to: &tree) }
    }
    if let event = BlueZEvent(signal, owner: Names.bluetoothd) { apply(event, to: &tree) }
  }
}

private func apply(_ event: BlueZEvent, to tree: inout ObjectTree) {
  let changes = tree.apply(event)
  for change in changes {
    guard case .device(let path) = change else { continue }
    expect(tree.devices[path] != nil, "\(path) has changed, and is not there")
  }
  for path in tree.devices.keys {
    guard let peripheral = tree.peripheral(at: path) else { continue }
    expect(isWritten(peripheral.json(nil)), "\(path) is not written as JSON")
    let characteristics = tree.characteristics(of: peripheral.id)
    for characteristic in characteristics {
      expect(tree.contains(characteristic), "\(characteristic) is not there")
      _ = tree.descriptors(of: characteristic)
    }
    expect(Set(characteristics.map(\.path)).count == characteristics.count, "two at one path")
    expect(characteristics.count <= ServiceTable.mostAttributes, "too many characteristics")
  }
}

/// A message that was sent to this process.
private struct Received: ~Copyable {
  let message: IncomingMessage

  init?(_ signal: DBusSignal) {
    guard let sent = try? OutgoingMessage(signal: signal) else { return nil }
    dbus_message_set_serial(sent.raw, 1)
    dbus_message_set_sender(sent.raw, signal.sender)
    var start: UnsafeMutablePointer<CChar>?
    var count: Int32 = 0
    guard dbus_message_marshal(sent.raw, &start, &count) != 0 else { return nil }
    defer { dbus_free(start) }
    guard let raw = dbus_message_demarshal(start, count, nil) else { return nil }
    message = IncomingMessage(raw: raw)
  }

  deinit { dbus_message_unref(message.raw) }
}

private enum Names {
  static let bluetoothd = ":1.5"
  static let adapter = "/org/bluez/hci0"
  static let paths: [String] = {
    let device = "\(adapter)/dev_C5_A1_B2_C3_D4_E5"
    let characteristic = "\(device)/service0015/char0019"
    return [
      adapter, device, "\(device)/service0015", characteristic, "\(characteristic)/desc001b", "/",
      "\(adapter)/dev_C5_A1_B2_C3_D4_E6", "\(device)/service0025", "\(device)/service0025/char0026", "/org",
      "\(adapter)1", "\(adapter)/service0015",
    ]
  }()
  static let interfaces = [
    BlueZName.adapter, BlueZName.device, BlueZName.gattService, BlueZName.characteristic,
    BlueZName.descriptor,
    DBusName.properties,
  ]
  /// The properties of BlueZ's objects with their types.
  static let properties: [(name: String, type: String)] = [
    ("Address", "s"), ("Powered", "b"), ("Discovering", "b"), ("PowerState", "s"), ("Roles", "as"),
    ("Name", "s"),
    ("RSSI", "n"), ("Connected", "b"), ("Paired", "b"), ("ServicesResolved", "b"), ("UUIDs", "as"),
    ("UUID", "s"),
    ("Flags", "as"), ("ManufacturerData", "a{qv}"), ("ServiceData", "a{sv}"), ("AdvertisingFlags", "ay"),
    ("AdvertisingData", "a{yv}"), ("Value", "ay"),
  ]
  static let types = [
    "y", "b", "n", "q", "i", "u", "s", "o", "v", "ay", "as", "ao", "av", "a{sv}", "a{qv}", "a{uv}", "a{ov}",
    "(sv)", "a(ss)", "aay", "a{oa{sa{sv}}}",
  ]
  static let texts = [
    "C5:A1:B2:C3:D4:E5", "0000180a-0000-1000-8000-00805f9b34fb", "00001812-0000-1000-8000-00805f9b34fb",
    "central",
    "read", "notify", "RSSI", BlueZName.busName, bluetoothd, "",
  ]
}

extension Input {
  fileprivate mutating func signal() -> DBusSignal {
    let (member, interface, types) = choice([
      ("InterfacesAdded", DBusName.objectManager, ["o", "a{sa{sv}}"]),
      ("PropertiesChanged", DBusName.properties, ["s", "a{sv}", "as"]),
      ("InterfacesRemoved", DBusName.objectManager, ["o", "as"]),
      ("InterfacesAdded", DBusName.objectManager, ["a{oa{sa{sv}}}"]),
      ("Disconnected", BlueZName.device, ["s", "s"]),
      ("NameOwnerChanged", DBusName.bus, ["s", "s", "s"]),
      ("PropertiesChanged", DBusName.properties, [choice(Names.types), choice(Names.types), "as"]),
    ])
    let sender = member == "NameOwnerChanged" ? DBusName.bus : Names.bluetoothd
    let path = choice(Names.paths)
    return DBusSignal(member, on: interface, of: path, types.map { value($0[...]) }, sender: sender)
  }

  /// A value of a type.
  ///
  /// - Parameter depth: of the variants around it: a sender that nests more than 64 containers, which libdbus does not
  ///   prevent, makes it free what it has not allocated; and a receiver does not get such a message.
  private mutating func value(_ type: Substring, _ depth: Int = 0) -> DBusValue {
    let rest = type.dropFirst()
    switch type.first {
    case "y": return .byte(byte())
    case "b": return .boolean(byte() & 1 == 1)
    case "n": return .int16(Int16(truncatingIfNeeded: number()))
    case "q": return .uint16(UInt16(truncatingIfNeeded: number()))
    case "i": return .int32(Int32(truncatingIfNeeded: number()))
    case "u": return .uint32(UInt32(truncatingIfNeeded: number()))
    case "s": return .string(string())
    case "o": return .objectPath(choice(Names.paths))
    case "v": return .variant(value(depth < 8 ? choice(Names.types)[...] : "s", depth + 1))
    case "(":
      var (members, types): ([DBusValue], Substring) = ([], rest.dropLast())
      while !types.isEmpty {
        let first = Self.complete(types)
        members.append(value(first, depth))
        types = types.dropFirst(first.count)
      }
      return .structure(members)
    case "a" where rest == "y": return .bytes(bytes())
    case "a" where rest.first == "{":
      let (key, content) = (rest.dropFirst().prefix(1), rest.dropFirst(2).dropLast())
      let entries = (0..<byte() % 8).map { _ in entry(key, content, depth) }
      return .dictionary(key: String(key), value: String(content), entries)
    default: return .array(of: String(rest), (0..<byte() % 8).map { _ in value(rest, depth) })
    }
  }

  /// Mostly one of a property or an interface, by the type of the value.
  private mutating func entry(_ key: Substring, _ content: Substring, _ depth: Int) -> DBusValue.Entry {
    if key == "s", content == "v", depth < 8, byte() % 8 > 0 {
      let (name, type) = choice(Names.properties)
      return DBusValue.Entry(
        .string(name),
        .variant(value(byte() % 8 > 0 ? type[...] : choice(Names.types)[...], depth + 1)))
    }
    if key == "s", content == "a{sv}" {
      return DBusValue.Entry(.string(choice(Names.interfaces)), value(content, depth))
    }
    return DBusValue.Entry(value(key), value(content, depth))
  }

  private mutating func string() -> String {
    let kind = byte()
    if kind < 128 { return choice(Names.texts) }
    if kind < 192 { return choice(Names.interfaces) }
    return String(text().filter { $0 != "\0" })
  }

  /// The first complete type of several.
  private static func complete(_ types: Substring) -> Substring {
    switch types.first {
    case "a": return types.prefix(1 + complete(types.dropFirst()).count)
    case "(", "{":
      var depth = 0
      let end = types.firstIndex { character in
        if "({".contains(character) { depth += 1 }
        if ")}".contains(character) { depth -= 1 }
        return depth == 0
      }
      return end.map { types[...$0] } ?? types
    default: return types.prefix(1)
    }
  }
}
