import CDBus

/// A received libdbus message. Its contents are converted to Swift values on access.
///
/// Valid until the closure that received it returns: ``ConnectionHandle`` then releases the message.
struct IncomingMessage {
  let raw: OpaquePointer

  var type: Int32 { dbus_message_get_type(raw) }
  var path: String { dbus_message_get_path(raw).map(String.init(cString:)) ?? "" }
  var interface: String? { dbus_message_get_interface(raw).map(String.init(cString:)) }
  var member: String { dbus_message_get_member(raw).map(String.init(cString:)) ?? "" }
  var sender: String? { dbus_message_get_sender(raw).map(String.init(cString:)) }
  var errorName: String { dbus_message_get_error_name(raw).map(String.init(cString:)) ?? "" }
  /// The serial number of the call that a reply answers.
  var answeredSerial: UInt32 { dbus_message_get_reply_serial(raw) }
  /// The serial number for a reply to refer to; nil if none is expected.
  var replySerial: UInt32? { dbus_message_get_no_reply(raw) != 0 ? nil : dbus_message_get_serial(raw) }
  var arguments: [DBusValue] { DBus.arguments(of: raw) }
}

extension DBusSignal {
  init(_ message: IncomingMessage) {
    self.init(
      message.member, on: message.interface ?? "", of: message.path, message.arguments, sender: message.sender
    )
  }
}
