import DBus

/// org.freedesktop.DBus.Properties.
extension Bluetoothd {
  mutating func propertyCall(_ request: DBusCall) throws(DBusError) {
    let names = request.arguments.prefix(2).compactMap(\.text)
    guard let list = tree.properties(request.path, names[0]) else { throw .noSuch("interface", names[0]) }
    switch request.member {
    case "Get":
      guard let value = list.first(where: { $0.name == names[1] })?.value else {
        throw .noSuch("property", names[1])
      }
      reply(to: request, .variant(value))
    case "GetAll": reply(to: request, ObjectTree.dictionary(of: list))
    case "Set":
      let name = names[1]
      guard list.contains(where: { $0.name == name }) else { throw .unknownProperty(name) }
      // Only the adapter's Powered can be set; bluetoothd has more such properties.
      guard names[0] == BlueZName.adapter, name == "Powered",
        case .adapter(let number) = tree.role(of: request.path)
      else { throw .readOnly(name) }
      guard let on = request.arguments[2].bool else { throw .invalidSignature(name) }
      setPowered(number, on, for: request)
    default: break
    }
  }
}
