import DBus

/// bluetoothd's objects on the bus, with their properties. Pure: changes return the signals to send.
struct ObjectTree: Sendable {
  /// The value is nil while the property does not exist, as RSSI without discovery.
  typealias Property = (name: String, value: DBusValue?)

  struct Interface: Sendable {
    let name: String
    var properties: [Property]

    init(_ name: String, _ properties: [Property] = []) {
      self.name = name
      self.properties = properties
    }
  }

  /// What an object represents.
  enum Role: Sendable, Hashable {
    case root
    case manager
    /// An adapter by its number.
    case adapter(Int)
    case device(DeviceKey)
    case service
    case characteristic(DeviceKey, UInt16)
    case descriptor(DeviceKey, UInt16)
  }

  private struct Node: Sendable {
    let role: Role
    let parent: String
    var interfaces: [Interface]
    /// The children in the order of their creation.
    var children: [String] = []

    mutating func set(_ interface: String, _ changes: [Property]) {
      guard let at = interfaces.firstIndex(where: { $0.name == interface }) else { return }
      for (name, value) in changes {
        let property = interfaces[at].properties.firstIndex { $0.name == name }
        if let property { interfaces[at].properties[property].value = value }
      }
    }
  }

  private var nodes: [String: Node]

  init() {
    nodes = [
      "/": Node(
        role: .root, parent: "",
        interfaces: [Interface(DBusName.introspectable), Interface(DBusName.objectManager)])
    ]
  }

  // MARK: Objects

  func role(of path: String) -> Role? { nodes[path]?.role }
  func interfaces(of path: String) -> [Interface] { nodes[path]?.interfaces ?? [] }
  var paths: [String] { Array(nodes.keys) }

  mutating func add(_ path: String, _ role: Role, under parent: String, _ interfaces: [Interface])
    -> DBusSignal
  {
    nodes[path] = Node(role: role, parent: parent, interfaces: interfaces)
    nodes[parent]?.children.append(path)
    return Self.added(path, interfaces)
  }

  /// Adds interfaces to an object.
  mutating func extend(_ path: String, with interfaces: [Interface]) -> DBusSignal {
    nodes[path]?.interfaces += interfaces
    return Self.added(path, interfaces)
  }

  private static func added(_ path: String, _ interfaces: [Interface]) -> DBusSignal {
    DBusSignal(
      "InterfacesAdded", on: DBusName.objectManager, of: "/",
      [.objectPath(path), dictionary(of: interfaces)])
  }

  /// Removes an object and all below it; the signals are in bluetoothd's order, children first.
  mutating func remove(_ path: String) -> [DBusSignal] {
    guard let node = nodes[path] else { return [] }
    var signals = node.children.flatMap { remove($0) }
    // `node` was copied before its children were removed.
    nodes[path] = nil
    nodes[node.parent]?.children.removeAll { $0 == path }
    signals.append(Self.removed(path, Self.removalOrder(node.interfaces.map(\.name))))
    return signals
  }

  /// Removes interfaces of an object.
  mutating func strip(_ path: String, of names: [String]) -> DBusSignal {
    nodes[path]?.interfaces.removeAll { names.contains($0.name) }
    return Self.removed(path, names)
  }

  private static func removed(_ path: String, _ names: [String]) -> DBusSignal {
    DBusSignal(
      "InterfacesRemoved", on: DBusName.objectManager, of: "/", [.objectPath(path), .strings(names)])
  }

  /// When an object is removed, the standard interfaces come first.
  private static func removalOrder(_ names: [String]) -> [String] {
    let order = [
      DBusName.properties, DBusName.introspectable, BlueZName.adapter, BlueZName.advertisingManager,
      BlueZName.gattManager, BlueZName.network, BlueZName.media,
    ]
    return order.filter(names.contains) + names.filter { !order.contains($0) }
  }

  // MARK: Properties

  /// Changes properties of an interface, with one signal.
  /// - Parameter changes: nil removes the property.
  mutating func set(_ path: String, _ interface: String, _ changes: [Property]) -> DBusSignal {
    nodes[path]?.set(interface, changes)
    let changed = changes.compactMap { name, value in value.map { (name, $0) } }
    let invalidated = changes.compactMap { name, value in value == nil ? name : nil }
    return .propertiesChanged(path, interface, .properties(changed), invalidated: invalidated)
  }

  /// The properties of an interface; nil if the object does not have it.
  func properties(_ path: String, _ interface: String) -> [Property]? {
    nodes[path]?.interfaces.first { $0.name == interface }?.properties
  }

  func value(_ path: String, _ interface: String, _ name: String) -> DBusValue? {
    properties(path, interface)?.first { $0.name == name }?.value
  }

  // MARK: Queries

  /// The reply to GetManagedObjects: parents first, the newest of siblings first, as bluetoothd orders them.
  func managedObjects() -> DBusValue {
    var objects: [(String, DBusValue)] = []
    func visit(_ path: String) {
      guard let node = nodes[path] else { return }
      if node.role != .root { objects.append((path, Self.dictionary(of: node.interfaces))) }
      for child in node.children.reversed() { visit(child) }
    }
    visit("/")
    return .objects(objects)
  }

  static func dictionary(of properties: [Property]) -> DBusValue {
    .properties(properties.compactMap { property in property.value.map { (property.name, $0) } })
  }

  private static func dictionary(of interfaces: [Interface]) -> DBusValue {
    .interfaces(interfaces.map { ($0.name, dictionary(of: $0.properties)) })
  }
}
