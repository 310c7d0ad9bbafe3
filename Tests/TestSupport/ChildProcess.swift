import CLinux
import EventLoop
import Glibc
import Synchronization

/// A program that a test started: its lines of output as events, its end by its own process id.
///
/// Output is read on a thread of its own, so that a full pipe never stops the child, and kept, so that a
/// failed test can show it.
public final class ChildProcess: Sendable {
  /// Its process id, which another process may have once ``isRunning`` is false.
  public let pid: pid_t
  private let output: Output
  private let exit: Exit

  /// Starts `program` with standard output and standard error in one pipe.
  public init(_ program: String, _ arguments: [String] = [], environment: [String: String] = [:]) throws {
    let (pid, descriptor) = try Self.spawn(program, arguments, environment)
    self.pid = pid
    let output = Output()
    self.output = output
    let exit = Exit()
    self.exit = exit
    detach {
      output.read(from: descriptor)
      var status: Int32 = 0
      while waitpid(pid, &status, 0) < 0, errno == EINTR {}
      exit.set(status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f))
    }
  }

  deinit { signal(SIGKILL) }

  private static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String: String]
  ) throws -> (pid_t, Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw Failure("pipe: errno \(errno)") }
    defer { close(ends[1]) }
    do {
      let pid = try spawn(program, arguments, environment) { actions in
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
      }
      return (pid, ends[0])
    } catch {
      close(ends[0])
      throw error
    }
  }

  /// - Parameters:
  ///   - flags: of posix_spawnattr_setflags(3).
  ///   - connect: sets its standard input, output and error.
  static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String: String], flags: Int16 = 0,
    connect: (inout posix_spawn_file_actions_t) -> Void
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    connect(&actions)
    // Nothing else is inherited: neither the pipe of another child, whose reader would never see its end, nor a
    // socket of libmosquitto, which a broker would take for alive as long as the child lives.
    posix_spawn_file_actions_addclosefrom_np(&actions, 3)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | flags)
    defer {
      posix_spawn_file_actions_destroy(&actions)
      posix_spawnattr_destroy(&attributes)
    }
    var merged = Self.environment()
    merged.merge(environment) { $1 }
    var argv = ([program] + arguments).map { strdup($0) } + [nil]
    var envp = merged.map { strdup("\($0.key)=\($0.value)") } + [nil]
    var pid = pid_t()
    let failure = posix_spawn(&pid, program, &actions, &attributes, &argv, &envp)
    for pointer in argv + envp { free(pointer) }
    guard failure == 0 else { throw Failure("\(program): \(String(cString: strerror(failure)))") }
    return pid
  }

  private static func environment() -> [String: String] {
    var result: [String: String] = [:]
    var entry = environ
    while let pointer = entry.pointee {
      let parts = String(cString: pointer).split(separator: "=", maxSplits: 1)
      if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
      entry += 1
    }
    return result
  }

  /// Sends `number` to the child, unless it has ended.
  public func signal(_ number: Int32) {
    if !exit.isSet { Glibc.kill(pid, number) }
  }

  /// Until its end has been waited for: a process that is stopped runs.
  public var isRunning: Bool { !exit.isSet }

  /// Everything it has printed so far.
  public var text: String { output.text }

  /// The next line not looked at yet that satisfies `condition`; lines before it are passed over.
  public func line(
    within limit: Duration = patience, where condition: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await deadline(limit, "a line of process \(self.pid); it printed:\n\(self.text)") {
      try await self.output.next(where: condition)
    }
  }

  /// Waits for its end: the exit status, or 128 + the signal.
  @discardableResult
  public func exitStatus(within limit: Duration = patience) async throws -> Int32 {
    try await deadline(limit, "the end of process \(self.pid); it printed:\n\(self.text)") {
      try await self.exit.value()
    }
  }

  /// Waits for its end on this thread, for clean-up alone.
  func waitForExit() { exit.wait() }
}

/// For whatever is awaited and must come. It bounds a failure alone, so that a busy machine may take its time.
public let patience = Duration.seconds(120)

/// Runs `body`, and fails naming `what` when that takes longer than `limit`. A body that does not end when it is cancelled
/// is waited for all the same.
public func deadline<T: Sendable>(
  _ limit: Duration, _ what: @autoclosure @escaping @Sendable () -> String,
  _ body: @escaping @Sendable () async throws -> T
) async throws -> T {
  try await withThrowingTaskGroup(of: T.self) { group in
    group.addTask { try await body() }
    group.addTask {
      try await Task.sleep(for: limit)
      throw Failure("waited \(limit) in vain for \(what())")
    }
    defer { group.cancelAll() }
    return try await group.next()!
  }
}

/// Asks again and again until `condition` holds: for what nothing reports.
public func eventually(
  _ what: String, _ condition: @escaping @Sendable () async throws -> Bool
) async throws {
  try await deadline(patience, what) {
    while try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
  }
}

/// The lines of a child, and the one task that may wait for the next.
private final class Output: Sendable {
  private struct State {
    var lines: [String] = []
    var looked = 0
    var ended = false
    var waiting: (condition: @Sendable (String) -> Bool, waiter: Waiter<String>)?
  }

  private let state = Mutex(State())

  var text: String { state.withLock { $0.lines.joined(separator: "\n") } }

  func read(from descriptor: Int32) {
    var rest: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      rest.append(contentsOf: buffer[..<count])
      while let end = rest.firstIndex(of: 10) {
        append(String(decoding: rest[..<end], as: UTF8.self))
        rest.removeSubrange(...end)
      }
    }
    if !rest.isEmpty { append(String(decoding: rest, as: UTF8.self)) }
    close(descriptor)
    state.withLock { state in
      state.ended = true
      return state.waiting?.waiter
    }?.resume(.failure(Failure("the process ended")))
  }

  private func append(_ line: String) {
    let found = state.withLock { state -> Waiter<String>? in
      state.lines.append(line)
      guard let waiting = state.waiting else { return nil }
      state.looked = state.lines.count
      guard waiting.condition(line) else { return nil }
      state.waiting = nil
      return waiting.waiter
    }
    found?.resume(.success(line))
  }

  func next(where condition: @escaping @Sendable (String) -> Bool) async throws -> String {
    let waiter = Waiter<String>()
    state.withLock { state in
      while state.looked < state.lines.count {
        let line = state.lines[state.looked]
        state.looked += 1
        if condition(line) {
          waiter.resume(.success(line))
          return
        }
      }
      if state.ended {
        waiter.resume(.failure(Failure("the process ended")))
      } else {
        state.waiting = (condition, waiter)
      }
    }
    return try await waiter.value()
  }
}

/// The end of a child.
private final class Exit: Sendable {
  private let state = Mutex<(status: Int32?, waiters: [Waiter<Int32>])>((nil, []))

  var isSet: Bool { state.withLock { $0.status != nil } }

  func set(_ status: Int32) {
    let waiters = state.withLock { state in
      state.status = status
      return state.waiters
    }
    for waiter in waiters { waiter.resume(.success(status)) }
  }

  func value() async throws -> Int32 {
    let waiter = Waiter<Int32>()
    state.withLock { state in
      if let status = state.status {
        waiter.resume(.success(status))
      } else {
        state.waiters.append(waiter)
      }
    }
    return try await waiter.value()
  }

  func wait() {
    while !isSet { usleep(1000) }
  }
}

extension ChildProcess {
  /// Where its descriptors lead.
  public var descriptors: [String] {
    get throws {
      let folder = "/proc/\(pid)/fd"
      return try names(in: folder).compactMap { target("\(folder)/\($0)") }
    }
  }
}

/// Where a symbolic link leads; nil if it is not there any more.
private func target(_ link: String) -> String? {
  // Of CChar: Swift 6.0.3 generates code that overwrites an array of another type itself.
  var target = [CChar](repeating: 0, count: 4096)
  let count = readlink(link, &target, target.count)
  return count < 0 ? nil : String(decoding: target[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// The path of a program of this package, in the folder of the test runner.
public func program(_ name: String) throws -> String {
  guard let own = target("/proc/self/exe"), let slash = own.lastIndex(of: "/") else {
    throw Failure("/proc/self/exe: errno \(errno)")
  }
  let path = own[...slash] + name
  guard access(String(path), X_OK) == 0 else { throw Failure("\(path) is not built") }
  return String(path)
}
