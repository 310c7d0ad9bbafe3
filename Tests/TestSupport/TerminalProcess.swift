import EventLoop
import Glibc
import Synchronization

/// A program at a terminal of its own, as a person uses it: what it shows is awaited, and answers are typed.
public final class TerminalProcess: Sendable {
  private struct State {
    var shown: [UInt8] = []
    /// How many of the bytes shown were awaited already.
    var passed = 0
    var status: Int32?
    var waiting: (text: [UInt8], waiter: Waiter<Void>)?
  }

  private let terminal: PseudoTerminal
  private let pid: pid_t
  private let state = Mutex(State())
  private let end = Waiter<Int32>()

  /// The leader of the session. When a leader ends, the kernel discards what it and others have shown and nobody has
  /// read: so it closes the terminal after the program's end, and stops until all has been read. Ctrl-C is for the
  /// program.
  private static let leader =
    #"trap : INT; "$@"; status=$?; exec <&- >&- 2>&-; kill -STOP $$; exit $status"#

  /// Starts `program` in a session of its own.
  public init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws {
    terminal = try PseudoTerminal()
    let path = terminal.path
    // POSIX_SPAWN_SETSID, hidden without _GNU_SOURCE: the terminal that is opened then becomes that of the session.
    let arguments = ["-c", Self.leader, "sh", program] + arguments
    pid = try ChildProcess.spawn("/bin/sh", arguments, environment, flags: 0x80) { actions in
      posix_spawn_file_actions_addopen(&actions, 0, path, O_RDWR, 0)
      posix_spawn_file_actions_adddup2(&actions, 0, 1)
      posix_spawn_file_actions_adddup2(&actions, 0, 2)
    }
    detach { [self] in read() }
  }

  deinit { if state.withLock({ $0.status }) == nil { kill(pid, SIGKILL) } }

  private func read() {
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      // An error once the program has closed the terminal: it has opened it before `spawn` returned.
      let count = Glibc.read(terminal.descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      state.withLock { $0.shown += chunk[..<count] }
      match()
    }
    var status: Int32 = 0
    func wait(_ options: Int32) { while waitpid(pid, &status, options) < 0, errno == EINTR {} }
    wait(WUNTRACED)
    if status & 0xff == 0x7f {
      kill(pid, SIGCONT)
      wait(0)
    }
    let code = status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
    let waiting = state.withLock { state in
      state.status = code
      return state.waiting
    }
    waiting?.waiter.resume(.failure(Failure("the program ended")))
    end.resume(.success(code))
  }

  private func match() {
    let found = state.withLock { state -> Waiter<Void>? in
      guard let (text, waiter) = state.waiting,
        let range = state.shown[state.passed...].firstRange(of: text)
      else { return nil }
      state.passed = range.upperBound
      state.waiting = nil
      return waiter
    }
    found?.resume(.success(()))
  }

  /// Waits until it has shown `text`, after what was awaited before.
  public func shows(_ text: String, within limit: Duration = patience) async throws {
    let waiter = Waiter<Void>()
    let hasEnded = state.withLock { state in
      state.waiting = (Array(text.utf8), waiter)
      return state.status != nil
    }
    match()
    if hasEnded { waiter.resume(.failure(Failure("the program ended"))) }
    try await deadline(limit, "\(text), it showed:\n\(self.text)") { try await waiter.value() }
  }

  /// Types `text`; `\u{3}` is Ctrl-C, `\u{4}` Ctrl-D.
  public func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(terminal.descriptor, bytes, bytes.count)
  }

  /// Waits for a question, and types the answer.
  public func answer(_ question: String, _ text: String) async throws {
    try await shows(question)
    type(text + "\n")
  }

  /// Everything it has shown, and what was typed, unless it was hidden.
  public var text: String { state.withLock { String(decoding: $0.shown, as: UTF8.self) } }

  /// Whether the terminal shows what is typed.
  public var isTypingShown: Bool {
    var settings = termios()
    return tcgetattr(terminal.descriptor, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Waits for its end: the exit status, or 128 + the signal.
  public func exitStatus(within limit: Duration = patience) async throws -> Int32 {
    try await deadline(limit, "the end of the program, it showed:\n\(self.text)") {
      try await self.end.value()
    }
  }
}
