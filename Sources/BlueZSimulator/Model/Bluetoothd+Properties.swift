import EventLoop
import DBus

/// org.freedesktop.DBus.Properties.
extension Bluetoothd {
  mutating func propertyCall(_ request: DBusCall, at now: Moment) throws(DBusError) {
    let names = request.arguments.prefix(2).compactMap(\.text)
    switch request.member {
    case "Get":
      guard let list = tree.properties(request.path, names[0]) else { throw .noSuchInterface(names[0]) }
      guard let value = list.first(where: { $0.name == names[1] })?.value else {
        throw .noSuchProperty(names[1])
      }
      reply(to: request, .variant(value))
    case "GetAll":
      guard let list = tree.properties(request.path, names[0]) else { throw .noSuchInterface(names[0]) }
      reply(to: request, ObjectTree.dictionary(of: list))
    case "Set":
      try set(request, interface: names[0], name: names[1], to: request.arguments[2].unwrapped, at: now)
    default: break
    }
  }

  /// Only the adapter's Powered can be set; bluetoothd has more such properties.
  private mutating func set(
    _ request: DBusCall, interface: String, name: String, to value: DBusValue,
    at now: Moment
  ) throws(DBusError) {
    guard let list = tree.properties(request.path, interface) else { throw .noSuchInterface(interface) }
    guard list.contains(where: { $0.name == name }) else { throw .unknownProperty(name) }
    guard interface == BlueZName.adapter, name == "Powered",
      case .adapter(let number) = tree.role(of: request.path)
    else { throw .readOnly(name) }
    guard let on = value.bool else { throw .invalidSignature(name) }
    setPowered(number, on, for: request, at: now)
  }
}
