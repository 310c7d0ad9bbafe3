/// Calls of bluetoothd.
extension DBusCall {
  /// Asks for all of its objects.
  package static let managedObjects = DBusCall(
    "GetManagedObjects", on: DBusName.objectManager, of: "/", at: BlueZName.busName)

  /// Sets a property of the object at `path`.
  package static func set(
    _ property: String, to value: DBusValue, on interface: String, of path: String
  ) -> DBusCall {
    DBusCall(
      "Set", on: DBusName.properties, of: path, at: BlueZName.busName,
      [.string(interface), .string(property), .variant(value)])
  }
}

/// Signals of the bus, and of every service with objects.
extension DBusSignal {
  /// Properties of the object at `path` have other values, or (`invalidated`) none.
  package static func propertiesChanged(
    _ path: String, _ interface: String, _ properties: DBusValue, invalidated: [String] = []
  ) -> DBusSignal {
    DBusSignal(
      "PropertiesChanged", on: DBusName.properties, of: path,
      [.string(interface), properties, .strings(invalidated)])
  }

  /// The bus name that has another owner, and the owner's unique name, nil if it has none; nil: the signal is another one.
  package var ownerChange: (name: String, owner: String?)? {
    guard sender == DBusName.bus, interface == DBusName.bus, member == "NameOwnerChanged",
      arguments.count == 3, let name = arguments[0].text, let owner = arguments[2].text
    else { return nil }
    return (name, owner.isEmpty ? nil : owner)
  }
}

extension DBusValue {
  /// `a{sv}`, in this order.
  package static func properties(_ list: [(String, DBusValue)]) -> DBusValue {
    .dictionary(key: "s", value: "v", list.map { Entry(.string($0.0), .variant($0.1)) })
  }

  /// `a{sa{sv}}`: the interfaces of an object, each with its properties.
  package static func interfaces(_ list: [(String, DBusValue)]) -> DBusValue {
    .dictionary(key: "s", value: "a{sv}", list.map { Entry(.string($0.0), $0.1) })
  }

  /// `a{oa{sa{sv}}}`: objects, each with its interfaces; the reply to GetManagedObjects.
  package static func objects(_ list: [(String, DBusValue)]) -> DBusValue {
    .dictionary(key: "o", value: "a{sa{sv}}", list.map { Entry(.objectPath($0.0), $0.1) })
  }
}
