import CDBus

/// Owns a libdbus message to be sent.
final class OutgoingMessage {
  let raw: OpaquePointer

  init(call: DBusCall) throws(DBusError) {
    try check(path: call.path)
    guard dbus_validate_member(call.member, nil) != 0 else { throw .invalid("method \(call.member)") }
    guard
      let raw = dbus_message_new_method_call(call.destination, call.path, call.interface, call.member)
    else { throw .invalid("out of memory") }
    self.raw = raw
    // Never start a service by a call: an absent bluetoothd is to be reported.
    dbus_message_set_auto_start(raw, 0)
    try append(call.arguments, to: raw)
  }

  init(signal: DBusSignal) throws(DBusError) {
    try check(path: signal.path)
    guard let raw = dbus_message_new_signal(signal.path, signal.interface, signal.member) else {
      throw .invalid("out of memory")
    }
    self.raw = raw
    try append(signal.arguments, to: raw)
  }

  init(replyTo serial: UInt32, sender: String?, error: String?, _ arguments: [DBusValue]) throws(DBusError) {
    let type = error == nil ? DBUS_MESSAGE_TYPE_METHOD_RETURN : DBUS_MESSAGE_TYPE_ERROR
    guard let raw = dbus_message_new(type) else { throw .invalid("out of memory") }
    self.raw = raw
    dbus_message_set_reply_serial(raw, serial)
    dbus_message_set_destination(raw, sender)
    dbus_message_set_no_reply(raw, 1)
    if let error { dbus_message_set_error_name(raw, error) }
    try append(arguments, to: raw)
  }

  deinit { dbus_message_unref(raw) }
}

private func check(path: String) throws(DBusError) {
  guard dbus_validate_path(path, nil) != 0 else { throw .invalid("object path \(path)") }
}
