import DBus

/// The objects that bluetoothd has on the bus, with their properties: pure bookkeeping, whose changes are
/// the signals that tell of them.
struct ObjectTree: Sendable {
  struct Property: Sendable {
    let name: String
    /// nil while the property does not exist, as RSSI outside of a discovery.
    var value: DBusValue?

    init(_ name: String, _ value: DBusValue?) {
      self.name = name
      self.value = value
    }
  }

  struct Interface: Sendable {
    let name: String
    var properties: [Property]

    init(_ name: String, _ properties: [Property] = []) {
      self.name = name
      self.properties = properties
    }
  }

  /// What an object stands for.
  enum Role: Sendable, Hashable {
    case root
    case manager
    case adapter
    case device(Int)
    case service(Int)
    case characteristic(Int, UInt16)
    case descriptor(Int, UInt16)
  }

  private struct Node: Sendable {
    let role: Role
    let parent: String
    var interfaces: [Interface]
    /// In the order of their making.
    var children: [String] = []
  }

  private var nodes: [String: Node]

  init() {
    nodes = ["/": Node(role: .root, parent: "", interfaces: [Interface(DBusName.objectManager)])]
  }

  // MARK: Objects

  func role(of path: String) -> Role? { nodes[path]?.role }

  mutating func add(_ path: String, _ role: Role, under parent: String, _ interfaces: [Interface])
    -> DBusSignal
  {
    nodes[path] = Node(role: role, parent: parent, interfaces: interfaces)
    nodes[parent]?.children.append(path)
    return Self.added(path, interfaces)
  }

  /// Puts further interfaces onto an object.
  mutating func extend(_ path: String, with interfaces: [Interface]) -> DBusSignal {
    nodes[path]?.interfaces += interfaces
    return Self.added(path, interfaces)
  }

  private static func added(_ path: String, _ interfaces: [Interface]) -> DBusSignal {
    DBusSignal(
      "InterfacesAdded", on: DBusName.objectManager, of: "/",
      [.objectPath(path), dictionary(of: interfaces)])
  }

  /// Takes an object and all below it away; the signals are in bluetoothd's order, what is below first.
  mutating func remove(_ path: String) -> [DBusSignal] {
    guard let node = nodes[path] else { return [] }
    var signals = node.children.flatMap { remove($0) }
    // The node as it is now has no children; its parent lets go of it.
    nodes[path] = nil
    nodes[node.parent]?.children.removeAll { $0 == path }
    signals.append(Self.removed(path, Self.removalOrder(node.interfaces.map(\.name))))
    return signals
  }

  /// Takes some interfaces off an object.
  mutating func strip(_ path: String, of names: [String]) -> DBusSignal {
    nodes[path]?.interfaces.removeAll { names.contains($0.name) }
    return Self.removed(path, names)
  }

  private static func removed(_ path: String, _ names: [String]) -> DBusSignal {
    DBusSignal(
      "InterfacesRemoved", on: DBusName.objectManager, of: "/", [.objectPath(path), .strings(names)])
  }

  /// The standard interfaces come first when an object goes, and around its own when it comes.
  private static func removalOrder(_ names: [String]) -> [String] {
    let order = [
      DBusName.properties, DBusName.introspectable, BlueZName.adapter, BlueZName.advertising,
      BlueZName.gattManager, BlueZName.network, BlueZName.media,
    ]
    return order.filter(names.contains) + names.filter { !order.contains($0) }
  }

  // MARK: Properties

  /// Changes properties of one interface together: one signal.
  /// - Parameter changes: a value of nil makes the property cease to exist.
  mutating func set(_ path: String, _ interface: String, _ changes: [(String, DBusValue?)]) -> DBusSignal {
    if let at = nodes[path]?.interfaces.firstIndex(where: { $0.name == interface }) {
      for (name, value) in changes {
        let property = nodes[path]?.interfaces[at].properties.firstIndex { $0.name == name }
        if let property { nodes[path]?.interfaces[at].properties[property].value = value }
      }
    }
    var changed: [DBusValue.Entry] = []
    var invalidated: [String] = []
    for (name, value) in changes {
      if let value {
        changed.append(DBusValue.Entry(.string(name), .variant(value)))
      } else {
        invalidated.append(name)
      }
    }
    return DBusSignal(
      "PropertiesChanged", on: DBusName.properties, of: path,
      [.string(interface), .dictionary(key: "s", value: "v", changed), .strings(invalidated)])
  }

  /// The properties of an interface; nil when the object has no such interface.
  func properties(_ path: String, _ interface: String) -> [Property]? {
    nodes[path]?.interfaces.first { $0.name == interface }?.properties
  }

  func value(_ path: String, _ interface: String, _ name: String) -> DBusValue? {
    properties(path, interface)?.first { $0.name == name }?.value
  }

  // MARK: As a whole

  func interfaces(of path: String) -> [Interface] { nodes[path]?.interfaces ?? [] }

  /// The names directly below `path`, whether it is an object itself or only leads to some.
  func names(below path: String) -> [String] {
    let prefix = path == "/" ? "/" : path + "/"
    var names: Set<String> = []
    for other in nodes.keys where other.hasPrefix(prefix) && other != "/" {
      if let name = other.dropFirst(prefix.count).split(separator: "/").first { names.insert(String(name)) }
    }
    return names.sorted()
  }

  /// The answer to GetManagedObjects: parents first, the youngest of siblings first, as bluetoothd has it.
  func managedObjects() -> DBusValue {
    var entries: [DBusValue.Entry] = []
    func visit(_ path: String) {
      guard let node = nodes[path] else { return }
      if node.role != .root {
        entries.append(DBusValue.Entry(.objectPath(path), Self.dictionary(of: node.interfaces)))
      }
      for child in node.children.reversed() { visit(child) }
    }
    visit("/")
    return .dictionary(key: "o", value: "a{sa{sv}}", entries)
  }

  static func dictionary(of properties: [Property]) -> DBusValue {
    .dictionary(
      key: "s", value: "v",
      properties.compactMap { property in
        property.value.map { DBusValue.Entry(.string(property.name), .variant($0)) }
      })
  }

  private static func dictionary(of interfaces: [Interface]) -> DBusValue {
    .dictionary(
      key: "s", value: "a{sv}",
      interfaces.map { DBusValue.Entry(.string($0.name), dictionary(of: $0.properties)) })
  }
}
