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

  /// The writable properties besides the adapter's Powered.
  private static let writable: Set<[String]> = [
    [BlueZName.adapter, "Alias"], [BlueZName.adapter, "Discoverable"],
    [BlueZName.adapter, "DiscoverableTimeout"], [BlueZName.adapter, "Pairable"],
    [BlueZName.adapter, "PairableTimeout"], [BlueZName.device, "Alias"],
    [BlueZName.device, "Trusted"],
    [BlueZName.device, "Blocked"],
  ]

  private mutating func set(
    _ request: DBusCall, interface: String, name: String, to value: DBusValue,
    at now: Moment
  ) throws(DBusError) {
    guard let list = tree.properties(request.path, interface) else { throw .noSuchInterface(interface) }
    guard let property = list.first(where: { $0.name == name }) else { throw .unknownProperty(name) }
    let powers = interface == BlueZName.adapter && name == "Powered"
    guard powers || Self.writable.contains([interface, name]) else { throw .readOnly(name) }
    guard property.value?.signature == value.signature else { throw .invalidSignature(name) }
    if powers, let on = value.bool, case .adapter(let number) = tree.role(of: request.path) {
      return setPowered(number, on, for: request, at: now)
    }
    reply(to: request)
    if property.value != value { emit(tree.set(request.path, interface, [(name, value)])) }
  }
}
