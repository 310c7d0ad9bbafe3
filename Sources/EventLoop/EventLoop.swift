import CLinux
import Glibc
import Synchronization

/// A thread with an `epoll` instance: the executor of every actor of the process.
///
/// An iteration of the loop runs the jobs that are ready and the timers that are due, then waits for file descriptors.
/// Everything on it therefore runs one at a time, and a handler of the loop may enter an actor synchronously by
/// `assumeIsolated`, without a context switch.
///
/// Nothing on the loop may block: blocking work (name resolution) is done by ``blocking(_:)``.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  // @unchecked: `foreign` is behind a mutex, `thread` and `stopping` are atomic; everything else is accessed on the
  // loop's thread only, which the public methods check.

  /// Its lower half would be the descriptor -1, which no watch has.
  private static let wakeUpToken = UInt64.max

  private let epoll: Int32
  private let wakeUp: Int32
  /// Jobs enqueued by other threads.
  private let foreign = Mutex<[UnownedJob]>([])
  private let thread = Atomic<UInt>(0)
  private let stopping = Atomic<Bool>(false)

  private var ready: [UnownedJob] = []
  private var spare: [UnownedJob] = []
  private var endHandlers: [any IterationEndHandler] = []
  private var spareEndHandlers: [any IterationEndHandler] = []
  private var watches = WatchTable()
  private(set) var timers = TimerQueue()
  /// The number of the current iteration. On the loop's thread only.
  public private(set) var iteration: UInt64 = 0

  /// The thread that calls ``run()`` becomes the loop's. Traps if no descriptors are available.
  public init() {
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    precondition(epoll >= 0 && wakeUp >= 0, "no epoll or eventfd: errno \(errno)")
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.u64 = Self.wakeUpToken
    epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event)
  }

  deinit {
    close(wakeUp)
    close(epoll)
  }

  // MARK: Running

  /// Runs on the calling thread until ``stop()``.
  public func run() {
    thread.store(UInt(pthread_self()), ordering: .releasing)
    let capacity = 64
    let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
    defer { events.deallocate() }
    while !stopping.load(ordering: .acquiring) {
      iteration &+= 1
      runReadyJobs()
      fireTimers()
      endIteration()
      let count = epoll_wait(epoll, events, Int32(capacity), timeout())
      for index in 0..<max(0, Int(count)) { dispatch(events[index]) }
    }
    runReadyJobs()
    thread.store(0, ordering: .releasing)
  }

  /// Ends ``run()`` for good after the current iteration. From any thread. Jobs enqueued later never run.
  public func stop() {
    stopping.store(true, ordering: .releasing)
    eventfd_write(wakeUp, 1)
  }

  /// Runs blocking work on a new thread.
  ///
  /// Meant for rare work (one name resolution per connection attempt), so there is no thread pool.
  public static func blocking<T: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: @escaping @Sendable () -> T
  ) async -> T {
    await withCheckedContinuation { continuation in
      detach { continuation.resume(returning: body()) }
    }
  }

  /// `epoll_wait`'s time-out in ms: 0 if jobs are ready, -1 if there is no timer.
  private func timeout() -> Int32 {
    if !ready.isEmpty || !endHandlers.isEmpty || stopping.load(ordering: .acquiring) { return 0 }
    // Do not wake up for cancelled timers.
    timers.dropCancelled()
    guard let next = timers.next else { return -1 }
    // Rounded up, so that the loop does not spin until the deadline.
    return Int32(clamping: Moment.now.milliseconds(until: next))
  }

  /// Calls `handler` at the end of the current iteration, before the loop waits again: work requested by many events of
  /// an iteration is done once. On the loop's thread only.
  public func atEndOfIteration(_ handler: any IterationEndHandler) {
    preconditionOnLoop()
    endHandlers.append(handler)
  }

  private func endIteration() {
    guard !endHandlers.isEmpty else { return }
    swap(&endHandlers, &spareEndHandlers)
    while let handler = spareEndHandlers.popLast() { handler.iterationEnds() }
  }

  private func fireTimers() {
    guard timers.next != nil else { return }
    // A timer set by a handler waits for the next iteration.
    let now = Moment.now
    while let timer = timers.popDue(at: now) { timer.fire() }
  }

  private func runReadyJobs() {
    // Bounded, so that jobs that enqueue jobs do not starve descriptors and timers; more than one, as an `await` among
    // actors of this loop takes a few rounds.
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

  private func dispatch(_ event: epoll_event) {
    let token = event.data.u64
    if token == Self.wakeUpToken {
      var count: eventfd_t = 0
      eventfd_read(wakeUp, &count)
      foreign.withLock { jobs in
        ready.append(contentsOf: jobs)
        jobs.removeAll(keepingCapacity: true)
      }
      return
    }
    watches[token]?.handler(Readiness(rawValue: event.events))
  }

  // MARK: Executor

  /// For the concurrency runtime, from any thread: the job runs in this iteration or a later one.
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
    }
  }

  /// For the concurrency runtime (SE-0424, `assumeIsolated`): traps off the loop's thread.
  public func checkIsolated() { preconditionOnLoop() }

  /// Whether the caller is on the loop's thread.
  public var isCurrent: Bool { thread.load(ordering: .acquiring) == UInt(pthread_self()) }

  /// For the concurrency runtime (SE-0471).
  public func isIsolatingCurrentContext() -> Bool? { isCurrent }

  func preconditionOnLoop() {
    precondition(isCurrent, "called off the event loop's thread")
  }

  // MARK: Descriptors

  /// Calls `handler` whenever `fd` is ready for `interest`, until the watch is cancelled. Level-triggered: `handler` is
  /// called again while data is left unread. On the loop's thread only.
  public func watch(
    _ fd: Int32, for interest: Readiness, _ handler: @escaping @Sendable (Readiness) -> Void
  ) -> Watch {
    preconditionOnLoop()
    let watch = Watch(fd: fd, token: watches.makeToken(fd), interest: interest, handler: handler, loop: self)
    watches.insert(watch)
    control(EPOLL_CTL_ADD, watch)
    return watch
  }

  func control(_ operation: Int32, _ watch: Watch) {
    var event = epoll_event()
    event.events = watch.interest.rawValue
    event.data.u64 = watch.token
    epoll_ctl(epoll, operation, watch.fd, &event)
  }

  func remove(_ watch: Watch) {
    preconditionOnLoop()
    guard watches.remove(watch) else { return }
    // Fails harmlessly if a library has closed the descriptor already.
    control(EPOLL_CTL_DEL, watch)
  }

  // MARK: Time

  /// Calls `handler` once after `delay`, unless the timer is cancelled first. On the loop's thread only.
  @discardableResult
  public func timer(after delay: Duration, _ handler: @escaping @Sendable () -> Void) -> LoopTimer {
    preconditionOnLoop()
    let timer = LoopTimer(deadline: Moment.now + delay, handler: handler)
    insert(timer)
    return timer
  }

  func insert(_ timer: LoopTimer) {
    preconditionOnLoop()
    timers.insert(timer)
  }
}

/// Is called at the end of an iteration. An object rather than a closure, as that would be allocated for every
/// iteration that receives a reading.
public protocol IterationEndHandler: AnyObject, Sendable {
  /// Called on the loop.
  func iterationEnds()
}
