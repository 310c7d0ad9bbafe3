import DBus

/// Introspection documents (D-Bus specification, "Introspection Data Format").
enum Introspection {
  static func document(_ interfaces: [ObjectTree.Interface], children: [String]) -> String {
    var text = """
      <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
      "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
      <node>

      """
    for interface in interfaces {
      text += "<interface name=\"\(interface.name)\">\n"
      for method in methods[interface.name] ?? [] { text += method.xml }
      for property in interface.properties {
        guard let value = property.value else { continue }
        text += "<property name=\"\(property.name)\" type=\"\(value.signature)\" access=\"read\"/>\n"
      }
      text += "</interface>\n"
    }
    for child in children { text += "<node name=\"\(child)\"/>\n" }
    return text + "</node>\n"
  }

  private struct Method {
    let name: String
    let inputs: [String]
    let outputs: [String]

    init(_ name: String, _ inputs: [String] = [], gives outputs: [String] = []) {
      self.name = name
      self.inputs = inputs
      self.outputs = outputs
    }

    var xml: String {
      var text = "<method name=\"\(name)\">"
      for type in inputs { text += "<arg type=\"\(type)\" direction=\"in\"/>" }
      for type in outputs { text += "<arg type=\"\(type)\" direction=\"out\"/>" }
      return text + "</method>\n"
    }
  }

  private static let methods: [String: [Method]] = [
    DBusName.introspectable: [Method("Introspect", gives: ["s"])],
    DBusName.properties: [
      Method("Get", ["s", "s"], gives: ["v"]), Method("GetAll", ["s"], gives: ["a{sv}"]),
      Method("Set", ["s", "s", "v"]),
    ],
    DBusName.objectManager: [Method("GetManagedObjects", gives: ["a{oa{sa{sv}}}"])],
    BlueZName.adapter: [
      Method("StartDiscovery"), Method("StopDiscovery"), Method("SetDiscoveryFilter", ["a{sv}"]),
      Method("GetDiscoveryFilters", gives: ["as"]), Method("RemoveDevice", ["o"]),
    ],
    BlueZName.device: [
      Method("Connect"), Method("Disconnect"), Method("Pair"), Method("CancelPairing"),
    ],
    BlueZName.characteristic: [
      Method("ReadValue", ["a{sv}"], gives: ["ay"]), Method("WriteValue", ["ay", "a{sv}"]),
      Method("AcquireWrite", ["a{sv}"], gives: ["h", "q"]),
      Method("AcquireNotify", ["a{sv}"], gives: ["h", "q"]), Method("StartNotify"), Method("StopNotify"),
    ],
    BlueZName.descriptor: [
      Method("ReadValue", ["a{sv}"], gives: ["ay"]), Method("WriteValue", ["ay", "a{sv}"]),
    ],
    BlueZName.agentManager: [
      Method("RegisterAgent", ["o", "s"]), Method("UnregisterAgent", ["o"]),
      Method("RequestDefaultAgent", ["o"]),
    ],
  ]
}
