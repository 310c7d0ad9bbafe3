import EventLoop
import DBus

/// bluetoothd's state of a peripheral.
struct Device: Sendable {
  /// The state of the link.
  enum Link: Sendable {
    /// No link. → waiting by Connect
    case none
    /// Connect was called. → linking when it advertises and the radio is free; none by time-out, Disconnect or power
    /// off
    case waiting(DBusCall)
    /// The radio establishes the link. → linked; none as from waiting
    case linking(DBusCall)
    /// Connected is true, the features are being exchanged, Connect is not answered yet. → resolving; disconnecting by
    /// Disconnect; none when the link is lost
    case linked(DBusCall)
    /// Connect is answered; services are being discovered. → up; else as from linked
    case resolving
    /// Services are resolved. → disconnecting by Disconnect, none when the link is lost
    case up
    /// Disconnect was called: bluetoothd ends the link after a delay, and all works meanwhile. → none
    case disconnecting(Disconnecting)
  }

  struct Disconnecting: Sendable {
    /// The calls of Disconnect and RemoveDevice to answer.
    var calls: [DBusCall] = []
    /// Whether RemoveDevice was called: the device is removed when the link has ended.
    var removes = false
    /// Whether the services were resolved when Disconnect was called.
    var resolved: Bool
  }

  /// The subscribers of a characteristic.
  struct Subscription: Sendable {
    /// Callers of StartNotify.
    var clients: [String] = []
    /// The state of an AcquireNotify.
    var socket: Socket?
    /// The client configuration has been written on this link.
    var isConfigured = false

    var isActive: Bool { socket != nil || !clients.isEmpty }

    var channel: ChannelID? { if case .open(let channel) = socket { channel } else { nil } }
  }

  /// The socket of AcquireNotify. While there is one, others cannot subscribe.
  enum Socket: Sendable, Equatable {
    /// The client configuration is being written. → open; stuck when that fails or the caller leaves the bus
    case asked(by: String)
    case open(ChannelID)
    /// bluetoothd before 5.84 frees the state of a failed AcquireNotify, does not answer, and regards the notifications
    /// as acquired (`register_notify_io_cb` in its `src/gatt-client.c`) until it ends. Whatever would close the socket
    /// uses the freed memory and crashes it.
    case stuck
  }

  /// An ATT request, queued or in progress.
  enum Operation: Sendable {
    /// Simultaneous reads of a characteristic share one request.
    case read(UInt16, [DBusCall], offset: Int)
    case write(UInt16, [UInt8], DBusCall, offset: Int)
    /// The client configuration is written for these calls of StartNotify; for none if bluetoothd subscribes again on a new
    /// link.
    case subscribe(UInt16, [DBusCall])
    /// The client configuration is written for an AcquireNotify.
    case acquire(UInt16, DBusCall)

    /// The characteristic.
    var handle: UInt16 {
      switch self {
      case .read(let handle, _, _), .write(let handle, _, _, _), .subscribe(let handle, _),
        .acquire(let handle, _):
        handle
      }
    }
  }

  let path: String
  var lastFound: Moment
  /// When to check whether the device has expired: one that was never connected is removed when it has not advertised for a
  /// while.
  var expiry: Moment
  var link = Link.none
  /// Handles of the services whose objects exist; they remain after a disconnect.
  var exported: Set<UInt16> = []
  /// The UUIDs property is known.
  var discovered = false
  var subscriptions: [UInt16: Subscription] = [:]
  var operations: [Operation] = []
  /// The call of Pair in progress.
  var pairing: DBusCall?
  /// The current attempt to connect, to tell events of an earlier one.
  var attempt: UInt64 = 0

  var isConnected: Bool {
    switch link {
    case .none, .waiting, .linking: false
    case .linked, .resolving, .up, .disconnecting: true
    }
  }

  /// Whether values can be read and written.
  var isUsable: Bool {
    switch link {
    case .none, .waiting, .linking, .linked, .resolving: false
    case .up: true
    case .disconnecting(let disconnecting): disconnecting.resolved
    }
  }
}
