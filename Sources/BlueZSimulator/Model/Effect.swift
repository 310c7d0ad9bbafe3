import DBus

/// Which call a reply belongs to.
struct CallID: Hashable, Sendable {
  let number: UInt64
}

/// Which notification socket a value goes to.
struct ChannelID: Hashable, Sendable {
  let number: UInt64
}

/// A method call, as the model sees it.
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

/// What the model wants done on the bus, in this order.
enum Effect: Sendable {
  case signal(DBusSignal)
  case reply(CallID, [DBusValue])
  case refuse(CallID, BlueZError)
  /// The call never gets an answer.
  case abandon(CallID)
  /// Make a socket pair, keep one end under this name, answer the call with the other and the MTU.
  case open(ChannelID, for: CallID)
  /// The signal of a notification of the peripheral of this index.
  case notification(DBusSignal, [UInt8], from: Int)
  /// A notification of the peripheral of this index, by socket.
  case packet(ChannelID, [UInt8], from: Int)
  case hangUp(ChannelID)
  /// bluetoothd dies of it: the last effect.
  case crash
}
