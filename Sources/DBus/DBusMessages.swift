/// A method call, to be sent or as received.
public struct DBusCall: Sendable, Equatable {
  var destination: String?
  /// The object's path.
  public var path: String
  /// The method's interface; optional in a received call (D-Bus specification, "Method Calls").
  public var interface: String?
  /// The method's name.
  public var member: String
  /// The arguments, of the types that the method requires.
  public var arguments: [DBusValue]
  /// Received calls only: the caller's unique name.
  public let sender: String?
  /// Received calls only: the serial number that a reply refers to; nil if no reply is expected.
  let replySerial: UInt32?
}

extension DBusCall {
  /// A call to the bus name `destination`. Checked when it is sent: ``DBusError/invalid(_:)``. A `sender` and a
  /// `replySerial` make it look like a received one, for tests.
  package init(
    _ member: String, on interface: String, of path: String, at destination: String,
    _ arguments: [DBusValue] = [], sender: String? = nil, replySerial: UInt32? = nil
  ) {
    self.init(
      destination: destination, path: path, interface: interface, member: member, arguments: arguments,
      sender: sender, replySerial: replySerial)
  }

  init(_ message: IncomingMessage) {
    self.init(
      destination: nil, path: message.path, interface: message.interface, member: message.member,
      arguments: message.arguments, sender: message.sender, replySerial: message.replySerial)
  }
}

/// The result of a call: the arguments of its reply, or an error.
public typealias DBusAnswer = Result<[DBusValue], DBusError>

/// A signal, to be sent or as received.
public struct DBusSignal: Sendable {
  /// The unique name of its sender; nil in a signal to be sent.
  public let sender: String?
  /// The path of the object that emits it.
  public var path: String
  /// The signal's interface.
  public var interface: String
  /// The signal's name.
  public var member: String
  /// The arguments; in a received signal of any types.
  public var arguments: [DBusValue]
}

extension DBusSignal {
  /// A signal to be sent. A `sender` makes it look like a received one, for tests.
  public init(
    _ member: String, on interface: String, of path: String, _ arguments: [DBusValue] = [],
    sender: String? = nil
  ) {
    self.init(sender: sender, path: path, interface: interface, member: member, arguments: arguments)
  }
}

/// An unsolicited message, or the end of the connection.
public enum DBusEvent: Sendable {
  /// A signal subscribed to by ``DBusConnection/addMatch(_:)``, or addressed to this connection.
  case signal(DBusSignal)
  /// A call to be answered by ``DBusConnection/reply(to:_:)``.
  case call(DBusCall)
  /// The connection has ended, and why. No events follow.
  case disconnected(DBusError)
}
