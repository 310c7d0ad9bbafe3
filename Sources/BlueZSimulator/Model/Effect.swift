import DBus

/// Which call a reply belongs to.
struct CallID: Hashable, Sendable {
  let number: UInt64
}

/// Which notification socket a value goes to.
struct ChannelID: Hashable, Sendable {
  let number: UInt64
}

/// What a notification comes from: a characteristic of the peripheral of that index.
struct Source: Hashable, Sendable {
  let peripheral: Int
  let handle: UInt16
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
  /// The signal of a notification.
  case notification(DBusSignal, [UInt8], from: Source)
  /// A notification by socket.
  case packet(ChannelID, [UInt8], from: Source)
  case hangUp(ChannelID)
  /// bluetoothd dies of it: the last effect.
  case crash
}
