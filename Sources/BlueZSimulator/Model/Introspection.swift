import DBus

/// org.freedesktop.DBus.Introspectable: the objects below a path, and the types of an object's methods and properties, which
/// dbus-python and busctl ask for.
extension ObjectTree {
  /// The document of an object, or of a path above one; nil: there is neither.
  func introspection(of path: String) -> String? {
    let above = path == "/" ? "/" : path + "/"
    let below = paths.filter { $0 != path && $0.hasPrefix(above) }
    let children = Set(below.compactMap { $0.dropFirst(above.count).split(separator: "/").first })
    guard role(of: path) != nil || !children.isEmpty else { return nil }
    let members =
      interfaces(of: path).map(Self.document) + children.sorted().map { "<node name=\"\($0)\"/>" }
    return """
      <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN" \
      "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
      <node>\(members.joined())</node>
      """
  }

  /// Whether the object has the method, with arguments of these types.
  func hasMethod(_ request: DBusCall) -> Bool {
    guard let interface = interfaces(of: request.path).first(where: { $0.name == request.interface }) else {
      return false
    }
    return Self.methods[interface.name]?.contains {
      $0.name == request.member && $0.takes.joined() == request.signature
    } == true
  }

  private static func document(_ interface: Interface) -> String {
    let methods = (methods[interface.name] ?? []).map { method in
      let arguments =
        method.takes.map { "<arg type=\"\($0)\" direction=\"in\"/>" }
        + method.returns.map { "<arg type=\"\($0)\" direction=\"out\"/>" }
      return "<method name=\"\(method.name)\">\(arguments.joined())</method>"
    }
    let properties = interface.properties.compactMap { property in
      property.value.map { "<property name=\"\(property.name)\" type=\"\($0.signature)\" access=\"read\"/>" }
    }
    return "<interface name=\"\(interface.name)\">\((methods + properties).joined())</interface>"
  }

  private typealias Method = (name: String, takes: [String], returns: [String])

  /// The methods that are simulated.
  private static let methods: [String: [Method]] = [
    DBusName.introspectable: [("Introspect", [], ["s"])],
    DBusName.objectManager: [("GetManagedObjects", [], ["a{oa{sa{sv}}}"])],
    DBusName.properties: [
      ("Get", ["s", "s"], ["v"]), ("Set", ["s", "s", "v"], []), ("GetAll", ["s"], ["a{sv}"]),
    ],
    BlueZName.adapter: [
      ("StartDiscovery", [], []), ("StopDiscovery", [], []), ("SetDiscoveryFilter", ["a{sv}"], []),
      ("GetDiscoveryFilters", [], ["as"]), ("RemoveDevice", ["o"], []),
    ],
    BlueZName.device: [
      ("Connect", [], []), ("Disconnect", [], []), ("Pair", [], []), ("CancelPairing", [], []),
    ],
    BlueZName.characteristic: [
      ("ReadValue", ["a{sv}"], ["ay"]), ("WriteValue", ["ay", "a{sv}"], []), ("StartNotify", [], []),
      ("StopNotify", [], []), ("AcquireNotify", ["a{sv}"], ["h", "q"]),
      ("AcquireWrite", ["a{sv}"], ["h", "q"]),
    ],
    BlueZName.descriptor: [("ReadValue", ["a{sv}"], ["ay"]), ("WriteValue", ["ay", "a{sv}"], [])],
    BlueZName.agentManager: [
      ("RegisterAgent", ["o", "s"], []), ("UnregisterAgent", ["o"], []), ("RequestDefaultAgent", ["o"], []),
    ],
  ]
}
