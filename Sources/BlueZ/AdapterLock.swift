import DBus
import EventLoop

/// The lock of an adapter: a name on bluetoothd's bus, which one connection at a time owns, and which the bus releases
/// when the connection ends for any reason.
///
/// The policy of the system bus says who may own it: deploy/dbus/microbit-gateway.conf.
enum AdapterLock {
  enum Outcome: Sendable, Equatable {
    case acquired
    /// The policy does not let this user own the name, and nobody else owns it.
    case denied
    /// Another gateway owns it; its process id, if known.
    case taken(by: Int32?)
  }

  static func name(of adapter: String) -> String { "org.microbit_gateway.\(adapter)" }

  static func acquire(_ adapter: String, on bus: DBusConnection) async throws(DBusError) -> Outcome {
    let name = name(of: adapter)
    while true {
      var isDenied = false
      do throws(DBusError) {
        if try await bus.requestName(name) { return .acquired }
      } catch {
        guard error.name == DBusName.Failure.accessDenied else { throw error }
        isDenied = true
      }
      if let owner = try await owner(of: adapter, on: bus) { return .taken(by: owner > 0 ? owner : nil) }
      if isDenied { return .denied }
    }
  }

  /// The process that owns the lock; nil: none. 0: it is not known.
  static func owner(of adapter: String, on bus: DBusConnection) async throws(DBusError) -> Int32? {
    do throws(DBusError) {
      let reply = try await bus.callBus("GetConnectionUnixProcessID", .string(name(of: adapter)))
      return Int32(clamping: reply.first?.integer ?? 0)
    } catch {
      switch error.name {
      case DBusName.Failure.nameHasNoOwner: return nil
      case DBusName.Failure.processUnknown: return 0
      default: throw error
      }
    }
  }
}

extension Central {
  /// Waits until this process holds the adapter's lock. Until then nothing is sent to bluetoothd: two gateways on one
  /// adapter would end each other's scans and links. One that may not own the lock goes on while nobody else has it.
  func lockAdapter(on bluetoothd: BluetoothdConnection) async throws {
    while true {
      switch try await bluetoothd.lock(currentName) {
      case .acquired: return
      case .denied:
        log.info(
          "cannot lock the adapter: a second gateway on it would not be noticed",
          ["adapter": currentName, "policy": "dbus-1/system.d/microbit-gateway.conf"])
        return
      case .taken(let process):
        setState(.adapterInUse(by: process))
        try await loop.sleep(for: limits.lockRetry)
      }
    }
  }
}
