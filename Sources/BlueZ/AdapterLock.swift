import DBus
import EventLoop
import Glibc
import Sockets

/// An exclusive lock on a Bluetooth adapter, held for the lifetime of the object.
///
/// It is an abstract Unix socket (unix(7)) that its owner listens on. The kernel removes it when the process ends for
/// any reason, so it leaves no file behind and needs no directory or permission. Other processes connect to it to learn
/// the owner's process id and to be notified (hang-up) when that process ends. It is valid within one network namespace
/// (not across containers), and any local user could hold it.
final class AdapterLock: @unchecked Sendable {
  // @unchecked: accessed on the loop's thread only.
  let name: LockName
  private let loop: EventLoop
  private var listener: SocketListener?
  /// The connections of the processes that wait. They are accepted only to notice their ends: a connection that is not
  /// accepted keeps its place in the queue after its process has gone.
  private var waiting: [Int32: Watch] = [:]

  /// Processes that can wait for the hang-up; about as many can wait to be accepted, any further ones poll.
  private static let mostWaiting = 64

  /// Acquires the lock; nil if another process holds it.
  /// - Throws: ``LockError`` if no socket can be created.
  init?(_ name: LockName, on loop: EventLoop) throws(LockError) {
    self.name = name
    self.loop = loop
    let descriptor = try LockError.check(socket(AF_UNIX, LockName.socketType, 0))
    guard name.withAddress({ bind(descriptor, $0, $1) }) == 0,
      listen(descriptor, Int32(Self.mostWaiting)) == 0
    else {
      let error = LockError()
      close(descriptor)
      if error.code == EADDRINUSE { return nil }
      throw error
    }
    listener = SocketListener(descriptor, mostConnections: Self.mostWaiting, loop: loop) { [weak self] in
      self?.watch($0)
    }
  }

  deinit {
    loop.onLoop { [waiting] in
      for (descriptor, watch) in waiting {
        watch.cancel()
        close(descriptor)
      }
    }
  }

  private func watch(_ descriptor: Int32) {
    waiting[descriptor] = loop.watch(descriptor, for: []) { [weak self] _ in
      self?.waiting.removeValue(forKey: descriptor)?.cancel()
      close(descriptor)
      self?.listener?.connectionEnded()
    }
  }

  /// The process that holds the lock.
  final class Owner: @unchecked Sendable {
    // @unchecked: accessed on the loop's thread only.
    private let descriptor: Int32
    private var watch: Watch?
    private(set) var hasEnded = false

    /// Connects to the owner's socket; nil if it has ended already, or does not listen yet.
    /// - Parameter ended: called on the loop when the process has released the lock.
    /// - Throws: ``LockError``; EAGAIN if too many processes wait already.
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

    /// The process id; nil if it is not visible from here, as from another container.
    var pid: Int32? {
      // `struct ucred` (process, user, group), which glibc hides from Swift.
      var credentials: [Int32] = [0, 0, 0]
      var size = socklen_t(credentials.count * MemoryLayout<Int32>.size)
      guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else { return nil }
      return credentials[0] > 0 ? credentials[0] : nil
    }
  }
}

/// Names an adapter on a bus: gateways on different buses do not exclude each other.
struct LockName: Sendable, Equatable {
  static let socketType = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)

  let text: String

  init(bus: String, adapter: String) { text = "microbit-gateway/\(bus)/\(adapter)" }

  func withAddress<T>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    // The name of an abstract socket begins with a NUL and has no terminator.
    let name = text.utf8.prefix(MemoryLayout.size(ofValue: address.sun_path) - 1)
    withUnsafeMutableBytes(of: &address.sun_path) { $0[1...].copyBytes(from: name) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path)! + 1 + name.count)
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, size) }
    }
  }
}

/// The socket of the lock could not be created.
struct LockError: Error, CustomStringConvertible {
  let code = errno

  var description: String { "the adapter cannot be reserved: \(String(cString: strerror(code)))" }

  fileprivate static func check(_ descriptor: Int32) throws(LockError) -> Int32 {
    guard descriptor >= 0 else { throw LockError() }
    return descriptor
  }
}

extension Central {
  /// Waits until this process holds the adapter's lock, or the bus ends. Until then nothing is sent to bluetoothd: two
  /// gateways on one adapter would end each other's scans and links.
  func acquireLock(_ name: LockName, while bus: BluetoothdConnection) async throws -> AdapterLock {
    var next = Moment.now
    while true {
      try Task.checkCancellation()
      if await bus.hasEnded { throw DBusError.disconnected }
      if let lock = try AdapterLock(name, on: loop) { return lock }
      // Limits the rate of attempts if the socket refuses every connection.
      let pause = Moment.now.duration(to: next)
      if pause > .zero { try await loop.sleep(for: pause) }
      next = .now + limits.lockRetry
      let ended: @Sendable () -> Void = { [weak self] in self?.assumeIsolated { $0.checkConditions() } }
      do throws(LockError) {
        guard let owner = try AdapterLock.Owner(name, on: loop, ended: ended) else { continue }
        setState(.adapterInUse(by: owner.pid))
        _ = await wait(limits.lockWait) { _ in owner.hasEnded || bus.assumeIsolated { $0.hasEnded } }
      } catch {
        guard error.code == EAGAIN else { throw error }
        setState(.adapterInUse(by: nil))
      }
    }
  }
}
