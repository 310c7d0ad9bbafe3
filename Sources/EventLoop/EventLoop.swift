import CLinux
import Glibc
import Synchronization

/// The isolation of all that runs on the event loop: the compiler checks it, and calls within it cost nothing.
///
/// Work that may block is done on threads of its own, which hand back values (``EventLoop/blocking(_:)``).
@globalActor public actor LoopActor {
  /// Required by `GlobalActor`.
  public static let shared = LoopActor()
  /// The loop.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// Calls `body` at once: for what C libraries call on the loop's thread. Traps on another thread.
  public nonisolated static func enter(_ body: @LoopActor () -> Void) {
    loop.checkIsolated()
    enter(by: Isolated(), body)
  }

  /// The requirement of the protocol is not isolated, its implementation is: such a call is what `assumeIsolated` is to
  /// `MainActor`. Release builds check nothing but the thread, above.
  private nonisolated static func enter(by entrance: some Entrance, _ body: @LoopActor () -> Void) {
    entrance.call(body)
  }
}

private protocol Entrance {
  func call(_ body: @LoopActor () -> Void)
}

@LoopActor private struct Isolated: @preconcurrency Entrance {
  nonisolated init() {}

  func call(_ body: @LoopActor () -> Void) { body() }
}

/// The event loop of the process.
public let loop = EventLoop()

/// A thread with an `epoll` instance: the executor of ``LoopActor``. There is one, ``loop``.
///
/// An iteration of the loop runs the jobs that are ready and the timers that are due, then waits for file descriptors:
/// one thing at a time.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  // @unchecked: `ready` and `spare` are accessed on the loop's thread only, in part by the concurrency runtime.

  /// A token that no watch has: its lower half would be the descriptor -1.
  private static let wakeUpToken = UInt64.max
  /// The value of ``thread`` while a thread is being created.
  private static let starting: UInt = 1

  private let epoll: Int32
  private let wakeUp: Int32
  /// Jobs enqueued by other threads.
  private let foreign = Mutex<[UnownedJob]>([])
  /// The thread that runs the loop; 0: none.
  private let thread = Atomic<UInt>(0)
  private var ready: [UnownedJob] = []
  private var spare: [UnownedJob] = []

  @LoopActor private var endHandlers: [any IterationEndHandler] = []
  @LoopActor private var spareEndHandlers: [any IterationEndHandler] = []
  @LoopActor private var watches = WatchTable()
  @LoopActor private(set) var timers = TimerQueue()
  /// When the loop last looked for what has arrived.
  @LoopActor private var polled = Moment.now

  /// Traps if no descriptors are available.
  fileprivate init() {
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    precondition(epoll >= 0 && wakeUp >= 0, "no epoll or eventfd: errno \(errno)")
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.u64 = Self.wakeUpToken
    epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event)
  }

  // MARK: Running

  /// Runs the loop, and `main` on it, on the calling thread, which is to be the first that uses the loop; `main` ends the
  /// process. If there is no such thread, as in tests, the first job starts one.
  public func run(_ main: @escaping @LoopActor () async -> Void) -> Never {
    let (isFirst, _) = thread.compareExchange(
      expected: 0, desired: UInt(pthread_self()), ordering: .acquiringAndReleasing)
    precondition(isFirst, "the event loop runs on another thread")
    task(main)
    run()
  }

  private func runOnNewThread() {
    let (isFirst, _) = thread.compareExchange(
      expected: 0, desired: Self.starting, ordering: .acquiringAndReleasing)
    guard isFirst else { return }
    let hasStarted = startThread {
      self.thread.store(UInt(pthread_self()), ordering: .releasing)
      self.run()
    }
    precondition(hasStarted, "no thread for the event loop")
  }

  private func run() -> Never {
    LoopActor.enter { iterate() }
    fatalError("the loop has ended")
  }

  @LoopActor private func iterate() -> Never {
    let capacity = 64
    let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
    while true {
      runReadyJobs()
      endIteration()
      var count = epoll_wait(epoll, events, Int32(capacity), timeout())
      // The process was stopped, perhaps for long: what has arrived meanwhile comes before timers.
      if count < 0 { count = epoll_wait(epoll, events, Int32(capacity), 0) }
      polled = .now
      beginIteration(UnsafeBufferPointer(start: events, count: max(0, Int(count))))
    }
  }

  private func runReadyJobs() {
    // Bounded, so that jobs that enqueue jobs do not starve descriptors and timers; more than one, as an `await` takes a
    // few rounds.
    var rounds = 0
    while !ready.isEmpty, rounds < 8 {
      rounds += 1
      swap(&ready, &spare)
      for job in spare {
        job.runSynchronously(
          isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
      }
      spare.removeAll(keepingCapacity: true)
    }
  }

  @LoopActor private func endIteration() {
    fireTimers()
    guard !endHandlers.isEmpty else { return }
    swap(&endHandlers, &spareEndHandlers)
    for handler in spareEndHandlers { handler.iterationEnds() }
    spareEndHandlers.removeAll(keepingCapacity: true)
  }

  /// `epoll_wait`'s time-out in ms: 0 if something is ready, -1 if there is no timer.
  @LoopActor private func timeout() -> Int32 {
    if !ready.isEmpty || !endHandlers.isEmpty { return 0 }
    // Do not wake up for cancelled timers.
    timers.dropCancelled()
    guard let next = timers.next else { return -1 }
    // Rounded up, so that the loop does not spin until the deadline. At most a minute: deadlines count the time that the
    // machine sleeps, which `epoll_wait` does not.
    return Int32(min(60_000, Moment.now.milliseconds(until: next)))
  }

  @LoopActor private func fireTimers() {
    // What has arrived during a long job comes before the timers that have become due meanwhile. A timer set by a handler
    // waits for the next iteration.
    while let timer = timers.popDue(at: polled) { timer.fire() }
  }

  @LoopActor private func beginIteration(_ events: UnsafeBufferPointer<epoll_event>) {
    for event in events {
      if event.data.u64 == Self.wakeUpToken {
        takeForeignJobs()
      } else {
        watches[event.data.u64]?.handler(Readiness(rawValue: event.events))
      }
    }
  }

  private func takeForeignJobs() {
    var count: eventfd_t = 0
    eventfd_read(wakeUp, &count)
    foreign.withLock { jobs in
      ready.append(contentsOf: jobs)
      jobs.removeAll(keepingCapacity: true)
    }
  }

  // MARK: Executor

  /// Called by the concurrency runtime, from any thread: the job runs in this iteration or a later one.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if isCurrent {
      ready.append(job)
    } else {
      let first = foreign.withLock { jobs in
        jobs.append(job)
        return jobs.count == 1
      }
      if first { eventfd_write(wakeUp, 1) }
      if thread.load(ordering: .acquiring) == 0 { runOnNewThread() }
    }
  }

  /// Called by the concurrency runtime (SE-0424): traps off the loop's thread.
  public func checkIsolated() { precondition(isCurrent, "called off the event loop's thread") }

  /// Whether the caller is on the loop's thread.
  public var isCurrent: Bool { thread.load(ordering: .acquiring) == UInt(pthread_self()) }

  /// Called by the concurrency runtime (SE-0471).
  public func isIsolatingCurrentContext() -> Bool? { isCurrent }

  // MARK: Tasks

  /// Starts a task. Use it instead of `Task { … }`, whose continuations resume in the global thread pool: two thread
  /// switches per `await`, and threads that never end.
  @discardableResult
  public func task<T: Sendable>(_ body: @escaping @LoopActor () async -> T) -> Task<T, Never> {
    Task(executorPreference: self, operation: body)
  }

  /// Runs `body` on the loop: at once if the caller is on its thread, else in a later iteration.
  public func onLoop(_ body: @escaping @LoopActor () -> Void) {
    if isCurrent { LoopActor.enter(body) } else { task(body) }
  }

  /// Runs blocking work on a new thread, or, if there can be none, at once: a delay of the loop is better than no answer.
  ///
  /// Meant for rare work (one name resolution per connection attempt), so there is no thread pool.
  @LoopActor public static func blocking<T: Sendable, E>(
    _ body: @escaping @Sendable () throws(E) -> T
  ) async throws(E) -> T {
    let result: Result<T, E> = await withCheckedContinuation { continuation in
      let work: @Sendable () -> Void = { continuation.resume(returning: Result(catching: body)) }
      if !startThread(work) { work() }
    }
    return try result.get()
  }

  // MARK: Descriptors

  /// Calls `handler` whenever `fd` is ready for `interest`, until the watch is cancelled. Level-triggered: `handler` is
  /// called again while data is left unread. A descriptor that cannot be watched is reported once, as closed.
  @LoopActor public func watch(
    _ fd: Int32, for interest: Readiness, _ handler: @escaping @LoopActor (Readiness) -> Void
  ) -> Watch {
    let watch = Watch(fd: fd, token: watches.makeToken(fd), interest: interest, handler: handler)
    watches.insert(watch)
    if !control(EPOLL_CTL_ADD, watch) {
      timer(after: .zero) { [weak watch] in
        if let watch, self.watches[watch.token] === watch { watch.handler(.closed) }
      }
    }
    return watch
  }

  /// - Returns: whether the kernel has accepted it.
  @LoopActor @discardableResult
  func control(_ operation: Int32, _ watch: Watch) -> Bool {
    var event = epoll_event()
    event.events = watch.interest.rawValue
    event.data.u64 = watch.token
    return epoll_ctl(epoll, operation, watch.fd, &event) == 0
  }

  @LoopActor func remove(_ watch: Watch) {
    guard watches.remove(watch) else { return }
    // Fails harmlessly if a library has closed the descriptor already.
    control(EPOLL_CTL_DEL, watch)
  }

  // MARK: Time

  /// Calls `handler` once after `delay`, unless the timer is cancelled first.
  @LoopActor @discardableResult
  public func timer(after delay: Duration, _ handler: @escaping @LoopActor () -> Void) -> LoopTimer {
    let timer = LoopTimer(deadline: Moment.now + max(.zero, delay), handler: handler)
    insert(timer)
    return timer
  }

  @LoopActor func insert(_ timer: LoopTimer) { timers.insert(timer) }

  /// Suspends for `duration`; ends early, with `CancellationError`, when the task is cancelled.
  @LoopActor public func sleep(for duration: Duration) async throws {
    _ = try await Waiter<Void>().value(within: duration)
  }

  /// The result of `body`; nil if it takes longer than `limit`, or the task is cancelled: `body` then goes on by itself.
  @LoopActor public func result<T: Sendable>(
    within limit: Duration, of body: @escaping @LoopActor () async -> T
  ) async -> T? {
    let waiter = Waiter<T>()
    task { waiter.resume(.success(await body())) }
    return try? await waiter.value(within: limit)
  }

  /// Calls `handler` at the end of the current iteration, before the loop waits again: work requested by many events of
  /// an iteration is done once.
  @LoopActor public func atEndOfIteration(_ handler: any IterationEndHandler) {
    // There are few of them.
    if !endHandlers.contains(where: { $0 === handler }) { endHandlers.append(handler) }
  }
}

/// Is called at the end of an iteration. An object rather than a closure, as that would be allocated for every
/// iteration that receives a reading.
@LoopActor public protocol IterationEndHandler: AnyObject, Sendable {
  func iterationEnds()
}
