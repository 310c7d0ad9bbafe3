import DBus

/// A change of BlueZ's objects, decoded from a signal.
enum BlueZEvent: Sendable, Equatable {
  typealias Properties = [String: DBusValue]

  /// An object was added, or has new interfaces.
  case added(path: String, interfaces: [String: Properties])
  /// Interfaces of an object were removed; the object is gone with its last interface.
  case removed(path: String, interfaces: [String])
  case changed(path: String, interface: String, properties: Properties, invalidated: [String])
  /// The link of a device has ended, and why (BlueZ 5.83 and newer).
  case linkEnded(path: String, reason: String)
  /// The owner of `org.bluez` changed; nil: bluetoothd has ended, and its objects are gone.
  case owner(String?)

  /// - Parameter owner: bluetoothd's unique name; signals from other senders are ignored.
  init?(_ signal: DBusSignal, owner: String?) {
    if let change = signal.ownerChange {
      guard change.name == BlueZName.busName else { return nil }
      self = .owner(change.owner)
      return
    }
    guard let owner, signal.sender == owner else { return nil }
    let arguments = signal.arguments
    switch (signal.interface, signal.member, arguments.count) {
    case (DBusName.objectManager, "InterfacesAdded", 2):
      guard let path = arguments[0].text, let interfaces = arguments[1].map else { return nil }
      self = .added(path: path, interfaces: interfaces.compactMapValues(\.map))
    case (DBusName.objectManager, "InterfacesRemoved", 2):
      guard let path = arguments[0].text, let interfaces = arguments[1].textArray else { return nil }
      self = .removed(path: path, interfaces: interfaces)
    case (DBusName.properties, "PropertiesChanged", 3):
      guard let interface = arguments[0].text, let properties = arguments[1].map,
        let invalidated = arguments[2].textArray
      else { return nil }
      self = .changed(
        path: signal.path, interface: interface, properties: properties, invalidated: invalidated)
    case (BlueZName.device, "Disconnected", 2):
      guard let name = arguments[0].text, let text = arguments[1].text else { return nil }
      let short = name.split(separator: ".").last.map(String.init) ?? name
      self = .linkEnded(path: signal.path, reason: text.isEmpty ? short : text)
    default:
      return nil
    }
  }

  /// The objects in the reply to `GetManagedObjects`, parents before their children.
  static func objects(_ reply: [DBusValue]) -> [BlueZEvent]? {
    guard let objects = reply.first?.map else { return nil }
    return objects.sorted { $0.key < $1.key }.map { path, interfaces in
      .added(path: path, interfaces: (interfaces.map ?? [:]).compactMapValues(\.map))
    }
  }
}
