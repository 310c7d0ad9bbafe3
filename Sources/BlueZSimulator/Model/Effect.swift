import DBus

/// Identifies a notification socket.
struct ChannelID: Hashable, Sendable {
  let number: UInt64
}

extension DBusCall {
  /// The caller's unique name.
  var client: String { sender ?? "" }

  var signature: String { arguments.map(\.signature).joined() }
}

/// An effect to perform on the bus.
enum Effect: Sendable {
  case signal(DBusSignal)
  /// A call that the model forgets is never answered.
  case answer(DBusCall, DBusAnswer)
  /// Create a socket pair, keep one end, and answer the call with the other and the MTU.
  case open(ChannelID, for: DBusCall)
  /// Ask an agent for the passkey of a device, for a call of Pair.
  case askPasskey(agent: String, of: String, device: String, for: DBusCall)
  /// The signal of a notification: its bytes, the peripheral, and the handle of the characteristic.
  case notification(DBusSignal, [UInt8], peripheral: Int, handle: UInt16)
  /// A notification by a socket.
  case packet(ChannelID, [UInt8])
  case hangUp(ChannelID)
  /// bluetoothd crashes: the last effect.
  case crash
}
