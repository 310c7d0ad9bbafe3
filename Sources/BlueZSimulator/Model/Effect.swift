import DBus

/// Identifies a method call.
struct CallID: Hashable, Sendable {
  let number: UInt64
}

/// Identifies a notification socket.
struct ChannelID: Hashable, Sendable {
  let number: UInt64
}

/// A method call.
struct Request: Sendable {
  let id: CallID
  /// The caller's unique name.
  let sender: String
  let path: String
  let interface: String
  let member: String
  let arguments: [DBusValue]

  var signature: String { arguments.map(\.signature).joined() }
}

/// An effect to perform on the bus.
enum Effect: Sendable {
  case signal(DBusSignal)
  case reply(CallID, [DBusValue])
  case refuse(CallID, BluetoothdError)
  /// The call is never answered.
  case abandon(CallID)
  /// Create a socket pair, keep one end, and answer the call with the other and the MTU.
  case open(ChannelID, for: CallID)
  /// Ask an agent for the passkey of a device, for a call of Pair.
  case askPasskey(agent: String, of: String, device: String, for: CallID)
  /// The signal of a notification: its bytes, the peripheral, and the handle of the characteristic.
  case notification(DBusSignal, [UInt8], peripheral: Int, handle: UInt16)
  /// A notification by a socket.
  case packet(ChannelID, [UInt8])
  case hangUp(ChannelID)
  /// bluetoothd crashes: the last effect.
  case crash
}
