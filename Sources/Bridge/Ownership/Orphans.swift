import Configuration
import Devices
import GATT

/// The topics of devices under ids that they no longer have at this gateway. Pure.
///
/// The topics are cleared unless another gateway owns them. As an earlier message may still be on its way, an orphan ends
/// when its `info` has come back empty, and then a further barrier.
struct Orphans {
  struct Orphan: Equatable, Sendable {
    let id: DeviceID
    let address: BluetoothAddress
    /// The properties whose values may be published.
    let offered: Set<PropertyName>
    /// See ``Orphans/setBarrier(_:)``.
    fileprivate var barrier: UInt64
    /// The last `info` on this connection, of any gateway.
    fileprivate var last: OwnershipMachine.Notice?
    fileprivate var isSettled = false
  }

  enum Action: Equatable, Sendable {
    /// No gateway owns the topics: clear them, `info` last.
    case clear(Orphan)
    /// The `info` is cleared: set a barrier that arrives after all that is on its way.
    case confirm(DeviceID)
    /// The topics are cleared, and there is no orphan any more.
    case cleared(Orphan)
    /// The topics are another gateway's, of the same device or of another one, and there is no orphan any more.
    case leave(Orphan, isSameDevice: Bool)
  }

  private let this: GatewayID
  private var byID: [DeviceID: Orphan] = [:]

  init(_ this: GatewayID) { self.this = this }

  var all: [Orphan] { all { _ in true } }

  /// In the order of their ids, so that the same messages are sent in the same order.
  private func all(where isWanted: (Orphan) -> Bool) -> [Orphan] {
    byID.values.filter(isWanted).sorted { $0.id.description < $1.id.description }
  }

  func contains(_ id: DeviceID) -> Bool { byID[id] != nil }

  /// - Parameter barrier: `.max` if it is known that no other gateway owns the topics, which are to be settled then.
  mutating func add(
    _ id: DeviceID, of address: BluetoothAddress, offered: Set<PropertyName>, barrier: UInt64
  ) {
    byID[id] = Orphan(id: id, address: address, offered: offered, barrier: barrier)
  }

  mutating func remove(_ id: DeviceID) -> Orphan? { byID.removeValue(forKey: id) }

  /// All that the broker retains arrives, again, before this barrier; `.max`: without a connection.
  mutating func setBarrier(_ barrier: UInt64) {
    for id in byID.keys {
      byID[id]!.barrier = barrier
      byID[id]!.isSettled = false
      byID[id]!.last = nil
    }
  }

  mutating func setBarrier(_ barrier: UInt64, of id: DeviceID) { byID[id]?.barrier = barrier }

  mutating func barrierArrived(_ number: UInt64) -> [Action] {
    all { $0.barrier <= number }.flatMap { settle($0.id) }
  }

  mutating func received(_ notice: OwnershipMachine.Notice) { byID[notice.id]?.last = notice }

  /// The broker has cleared the `info` of an id.
  mutating func cleared(_ id: DeviceID) -> [Action] {
    byID[id]?.last = nil
    return byID[id]?.isSettled == true ? [.confirm(id)] : []
  }

  /// All that was on its way has arrived: also what this gateway has published before, which is cleared, too.
  mutating func settle(_ id: DeviceID) -> [Action] {
    guard var orphan = byID[id] else { return [] }
    if let last = orphan.last, last.gateway != this {
      byID[id] = nil
      return [.leave(orphan, isSameDevice: last.address ?? orphan.address == orphan.address)]
    }
    if orphan.isSettled, orphan.last == nil {
      byID[id] = nil
      return [.cleared(orphan)]
    }
    let isBegun = orphan.isSettled
    (orphan.isSettled, orphan.barrier) = (true, .max)
    byID[id] = orphan
    return isBegun ? [] : [.clear(orphan)]
  }
}
