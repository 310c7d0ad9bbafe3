import DBus
import EventLoop
import Glibc

/// The right to be the one process that works with an adapter, as long as the object lives.
///
/// It is an abstract unix socket (unix(7)) on which the owner listens and accepts nobody. The kernel takes it away with
/// the process, however that ends: no file stays behind, and no folder or permission is needed. Who comes second
/// connects to it, learns whose it is, and gets the hang-up when that process ends. It holds within one network namespace
/// (not between containers), and any local user could take it.
final class AdapterLock: Sendable {
  let name: LockName
  let descriptor: Int32

  /// How many processes can wait for the hang-up; others look again after a while.
  private static let mostWaiting: Int32 = 64

  /// Takes it; nil when somebody else has it.
  /// - Throws: ``LockError`` when there is no socket to be had.
  init?(_ name: LockName) throws(LockError) {
    self.name = name
    // From here on `deinit` closes it, also where this fails.
    descriptor = try LockError.check(socket(AF_UNIX, LockName.socketType, 0))
    guard name.withAddress({ bind(descriptor, $0, $1) }) == 0 else {
      let error = LockError()
      if error.code == EADDRINUSE { return nil }
      throw error
    }
    guard listen(descriptor, Self.mostWaiting) == 0 else { throw LockError() }
  }

  deinit { close(descriptor) }

  /// The process that has it, and the moment when it has it no more.
  final class Owner: @unchecked Sendable {
    // @unchecked: touched on the loop's thread alone.
    private let descriptor: Int32
    private var watch: Watch?
    private(set) var hasEnded = false

    /// Connects to it; nil when it has ended already, or has not begun to listen.
    /// - Parameter ended: called on the loop when it has it no more.
    /// - Throws: ``LockError``; EAGAIN when too many wait already.
    init?(_ name: LockName, on loop: EventLoop, ended: @escaping @Sendable () -> Void) throws(LockError) {
      descriptor = try LockError.check(socket(AF_UNIX, LockName.socketType, 0))
      guard name.withAddress({ connect(descriptor, $0, $1) }) == 0 else {
        let error = LockError()
        if error.code == ECONNREFUSED { return nil }
        throw error
      }
      watch = loop.watch(descriptor, for: []) { [weak self] _ in
        self?.watch?.cancel()
        self?.hasEnded = true
        ended()
      }
    }

    deinit {
      watch?.cancel()
      close(descriptor)
    }

    /// Its process; nil when that is not to be seen from here, as from another container.
    var pid: Int32? {
      // As `struct ucred`, which glibc hides from Swift: process, user, group.
      var credentials: [Int32] = [0, 0, 0]
      var size = socklen_t(credentials.count * MemoryLayout<Int32>.size)
      guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else { return nil }
      return credentials[0] > 0 ? credentials[0] : nil
    }
  }
}

/// Of which adapter of which bus: gateways on private buses do not exclude each other.
struct LockName: Sendable, Equatable {
  static let socketType = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)

  let text: String

  init(bus: String, adapter: String) { text = "microbit-gateway/\(bus)/\(adapter)" }

  fileprivate func withAddress<T>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // Abstract: after a zero byte, without one at the end.
    let name = text.utf8.prefix(MemoryLayout.size(ofValue: address.sun_path) - 1)
    withUnsafeMutableBytes(of: &address.sun_path) { $0[1...].copyBytes(from: name) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + 1 + name.count)
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, size) }
    }
  }
}

/// A socket for the lock cannot be had.
struct LockError: Error, CustomStringConvertible {
  let code = errno

  var description: String { "the adapter cannot be reserved: \(String(cString: strerror(code)))" }

  fileprivate static func check(_ descriptor: Int32) throws(LockError) -> Int32 {
    guard descriptor >= 0 else { throw LockError() }
    return descriptor
  }
}

extension Central {
  /// Returns when this process has the adapter for itself. As long as another one has it, nothing is asked of
  /// bluetoothd: two of them would end each other's scans and links.
  func lockAdapter(on bus: DBusConnection) async throws {
    let identity = DBusCall("GetId", on: DBusName.bus, of: DBusName.busPath, at: DBusName.bus)
    guard let id = try await bus.call(identity, timeout: limits.local).first?.text else {
      throw DBusError.invalid("the bus has no id")
    }
    let name = LockName(bus: id, adapter: adapterName)
    // Kept from the connection before, to the same bus.
    if adapterLock?.name == name { return }
    adapterLock = nil
    var next = Moment.now
    while true {
      try Task.checkCancellation()
      if isBusLost { throw DBusError.disconnected }
      adapterLock = try AdapterLock(name)
      if adapterLock != nil { return }
      // A socket that turns everybody away is not tried without end.
      let pause = Moment.now.duration(to: next)
      if pause > .zero { try await loop.sleep(for: pause) }
      next = .now + limits.lockRetry
      let ended: @Sendable () -> Void = { [weak self] in self?.assumeIsolated { $0.checkConditions() } }
      do throws(LockError) {
        guard let owner = try AdapterLock.Owner(name, on: loop, ended: ended) else { continue }
        become(.adapterInUse(by: owner.pid))
        _ = await wait(limits.lockWait) { owner.hasEnded || $0.isBusLost }
      } catch {
        guard error.code == EAGAIN else { throw error }
        become(.adapterInUse(by: nil))
      }
    }
  }
}
