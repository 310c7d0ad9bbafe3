/// What bluetoothd holds of a peripheral.
struct Device: Sendable {
  /// Where a device is between "no link" and "link with services".
  enum Link: Sendable {
    /// No link, none wanted. Connect leads to waiting.
    case none
    /// Connect was called, the peripheral is not being linked to yet. Leads to linking, by being heard while
    /// the radio is free, or back to none by time-out, Disconnect or power off.
    case waiting(CallID)
    /// The radio makes the link. Leads to linked, or to none as from waiting.
    case linking(CallID)
    /// Connected is true; the features are being exchanged, Connect is not answered yet. Leads to resolving,
    /// to leaving by Disconnect, or to none when the link is lost.
    case linked(CallID)
    /// Connect is answered; services are being discovered. Leads to up, else as from linked.
    case resolving
    /// Services are resolved. Leads to leaving by Disconnect, to none when the link is lost.
    case up
    /// Disconnect was called: bluetoothd waits before it ends the link, and all goes on meanwhile. Leads to
    /// none.
    case leaving(Leaving)
  }

  struct Leaving: Sendable {
    /// Disconnect calls to answer.
    var calls: [CallID] = []
    /// A RemoveDevice call to answer, after which the device goes altogether.
    var removal: CallID?
    /// Whether the services were resolved when Disconnect was called.
    var resolved: Bool
  }

  /// Who wants the values of a characteristic.
  struct Subscription: Sendable {
    /// Callers of StartNotify.
    var clients: [String] = []
    /// What an AcquireNotify has come to.
    var socket: Socket?
    /// The peripheral's client configuration is written on this link: its values come.
    var isConfigured = false

    var isActive: Bool { socket != nil || !clients.isEmpty }

    var channel: ChannelID? { if case .open(let channel) = socket { channel } else { nil } }
  }

  /// The socket of AcquireNotify. As long as there is any, nobody else can subscribe.
  enum Socket: Sendable, Equatable {
    /// The client configuration is being written. Leads to open, or to stuck when that fails or the caller
    /// leaves the bus.
    case asked(by: String)
    case open(ChannelID)
    /// bluetoothd before 5.84 frees what belongs to a failed AcquireNotify, answers nothing, and takes the
    /// socket for acquired (`register_notify_io_cb` in its `src/gatt-client.c`). Only its end leads out of
    /// this; what would take the socket away touches freed memory, and is its end.
    case stuck
  }

  /// A caller of StartNotify who waits for the client configuration.
  struct Subscriber: Sendable {
    let client: String
    /// nil where bluetoothd subscribes again by itself.
    let call: CallID?
  }

  /// An ATT request, queued or on its way.
  enum Operation: Sendable {
    /// Reads at the same time of the same characteristic share one request.
    case read(UInt16, [CallID], offset: Int)
    case write(UInt16, [UInt8], CallID, offset: Int)
    /// The client configuration is written for callers of StartNotify.
    case subscribe(UInt16, [Subscriber])
    /// The client configuration is written for an AcquireNotify.
    case acquire(UInt16, CallID)

    /// The characteristic that it is about.
    var handle: UInt16 {
      switch self {
      case .read(let handle, _, _), .write(let handle, _, _, _), .subscribe(let handle, _),
        .acquire(let handle, _):
        handle
      }
    }

    var calls: [CallID] {
      switch self {
      case .read(_, let calls, _): calls
      case .write(_, _, let call, _), .acquire(_, let call): [call]
      case .subscribe(_, let subscribers): subscribers.compactMap(\.call)
      }
    }
  }

  let path: String
  /// Never connected yet: forgotten when it is not heard for a while.
  var temporary = true
  var lastHeard: ContinuousClock.Instant
  /// When to see whether a temporary device has become too old.
  var expiry: ContinuousClock.Instant
  var link = Link.none
  /// The handles of the services that are on the bus; they stay there over a disconnect.
  var exported: Set<UInt16> = []
  /// The UUIDs property is known.
  var discovered = false
  var subscriptions: [UInt16: Subscription] = [:]
  var operations: [Operation] = []
  /// Which attempt at a link this is, so that a planned event of an earlier one is recognised.
  var attempt: UInt64 = 0

  var isConnected: Bool {
    switch link {
    case .none, .waiting, .linking: false
    case .linked, .resolving, .up, .leaving: true
    }
  }

  /// Whether values can be read and written.
  var isUsable: Bool {
    switch link {
    case .none, .waiting, .linking, .linked, .resolving: false
    case .up: true
    case .leaving(let leaving): leaving.resolved
    }
  }
}
