import Glibc

/// A method call, to be sent or as received.
public struct DBusCall: Sendable {
  var destination: String?
  public var path: String
  public var interface: String?
  public var member: String
  public var arguments: [DBusValue]
  /// Received calls only: the caller's unique name.
  public let sender: String?
  /// Received calls only: what a reply refers to; nil when the caller wants none.
  let replySerial: UInt32?

  public init(
    _ member: String, on interface: String, of path: String, at destination: String,
    _ arguments: [DBusValue] = []
  ) {
    self.destination = destination
    self.path = path
    self.interface = interface
    self.member = member
    self.arguments = arguments
    self.sender = nil
    self.replySerial = nil
  }

  init(
    received member: String, interface: String?, path: String, sender: String?, replySerial: UInt32?,
    arguments: [DBusValue]
  ) {
    self.destination = nil
    self.path = path
    self.interface = interface
    self.member = member
    self.arguments = arguments
    self.sender = sender
    self.replySerial = replySerial
  }
}

/// What a call came to: the arguments of its reply, or why there is none.
public typealias DBusAnswer = Result<[DBusValue], DBusError>

/// A signal, to be sent or as received.
public struct DBusSignal: Sendable {
  /// The unique name of its sender; nil on a signal to be sent.
  public let sender: String?
  public var path: String
  public var interface: String
  public var member: String
  public var arguments: [DBusValue]

  public init(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    sender: String? = nil
  ) {
    self.sender = sender
    self.path = path
    self.interface = interface
    self.member = member
    self.arguments = arguments
  }
}

/// What arrives unasked.
public enum DBusEvent: Sendable {
  case signal(DBusSignal)
  /// To be answered by ``DBusConnection/reply(to:_:)``.
  case call(DBusCall)
  /// The connection ended from outside. Nothing follows.
  case disconnected
}

/// Where a bus is.
public enum DBusAddress: Sendable, Hashable {
  /// `$DBUS_SYSTEM_BUS_ADDRESS`, else the well-known socket.
  case system
  case at(String)
}

extension DBusAddress {
  /// The address in libdbus's form.
  var text: String {
    switch self {
    case .system: getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? Self.wellKnown
    case .at(let address): address
    }
  }

  /// D-Bus specification, "Well-known Message Bus Instances".
  private static let wellKnown = "unix:path=/run/dbus/system_bus_socket"
}
