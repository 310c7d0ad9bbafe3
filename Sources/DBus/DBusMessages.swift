import Glibc

/// A method call, to be sent or as received.
public struct DBusCall: Sendable {
  var destination: String?
  /// The object that is called.
  public var path: String
  /// Whose method it is. A received call need not say (D-Bus specification, "Method Calls").
  public var interface: String?
  /// The method's name.
  public var member: String
  /// In their order; what types they must have is the method's to say.
  public var arguments: [DBusValue]
  /// Received calls only: the caller's unique name.
  public let sender: String?
  /// Received calls only: what a reply refers to; nil when the caller wants none.
  let replySerial: UInt32?

  /// A call to be sent to the bus name `destination`. It is checked when it is sent: ``DBusError/invalid(_:)``.
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
  /// The object that it comes from.
  public var path: String
  /// Which interface's signal it is: names of signals are unique in one only.
  public var interface: String
  /// The signal's name.
  public var member: String
  /// In their order, as sent: another process may send any, so look at their types.
  public var arguments: [DBusValue]

  /// A signal to be sent. `sender` is for what shall look like a received one.
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

/// A signal that is sent many times: to make a message takes libdbus much longer than to copy one.
public final class PreparedSignal: @unchecked Sendable {
  // @unchecked: the message is never changed nor sent, only copied.
  let message: OutgoingMessage

  /// - Throws: ``DBusError/invalid(_:)``.
  public init(_ signal: DBusSignal) throws(DBusError) { message = try OutgoingMessage(signal: signal) }
}

/// What arrives unasked.
public enum DBusEvent: Sendable {
  /// One that was asked for by ``DBusConnection/addMatch(_:)``, or that the bus sends unasked.
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
  /// A server address (D-Bus specification, "Server Addresses"): `unix:path=/run/bus`.
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
