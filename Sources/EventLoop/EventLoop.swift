import CLinux
import Glibc
import Synchronization

/// One thread, one `epoll`: the executor of every actor of the process.
///
/// A turn of the loop runs the jobs that are ready, then the timers that are due, then waits for file
/// descriptors. Everything on it therefore runs one at a time, and an actor on it may be entered
/// synchronously from a handler of the loop by `assumeIsolated`, without a hop.
///
/// Nothing on the loop may block. What must block (name look-up) goes through ``blocking(_:)``.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  // @unchecked: `foreign` is behind a mutex and `running` is atomic; all else is touched on the loop's
  // thread alone, which `preconditionOnLoop` checks at each door.

  /// The descriptor's number in the low half would be -1: no watch has it.
  private static let wakeUpTicket = UInt64.max

  private let epoll: Int32
  private let wakeUp: Int32
  private let foreign = Mutex<[UnownedJob]>([])
  private let thread = Atomic<UInt>(0)
  private let stopping = Atomic<Bool>(false)

  private var ready: [UnownedJob] = []
  private var spare: [UnownedJob] = []
  private var endings: [any TurnEnding] = []
  private var spareEndings: [any TurnEnding] = []
  private var watches: [Watch?] = []
  /// Counts the watches, so that events of an old one are not taken for a new one's.
  private var watchesMade: UInt32 = 0
  private(set) var timers = TimerQueue()
  /// Counts the turns. On the loop's thread only.
  public private(set) var turn: UInt64 = 0

  /// On any thread: which one is the loop's is decided by ``run()``. Traps when there are no descriptors left.
  public init() {
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    // Out of descriptors before anything has begun: there is no one to report it to.
    precondition(epoll >= 0 && wakeUp >= 0, "no epoll or eventfd: errno \(errno)")
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.u64 = Self.wakeUpTicket
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
      turn &+= 1
      runReadyJobs()
      fireTimers()
      closeTurn()
      let count = epoll_wait(epoll, events, Int32(capacity), timeout())
      for index in 0..<max(0, Int(count)) { dispatch(events[index]) }
    }
    runReadyJobs()
    thread.store(0, ordering: .releasing)
  }

  /// Ends ``run()`` after the present turn, for good. From any thread. Jobs that come later never run.
  public func stop() {
    stopping.store(true, ordering: .releasing)
    eventfd_write(wakeUp, 1)
  }

  /// A loop on a thread of its own, for tests and tools.
  public static func onNewThread() -> EventLoop {
    let loop = EventLoop()
    detach { loop.run() }
    return loop
  }

  /// Runs `body` where it may block: on a thread of its own, which ends with it.
  ///
  /// Meant for rare work (one name look-up per connection attempt), so there is no pool to size.
  public static func blocking<T: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: @escaping @Sendable () -> T
  ) async -> T {
    await withCheckedContinuation { continuation in
      detach { continuation.resume(returning: body()) }
    }
  }

  /// `epoll_wait`'s time-out in ms: 0 when jobs are ready, -1 when there is nothing to wait for.
  private func timeout() -> Int32 {
    if !ready.isEmpty || !endings.isEmpty || stopping.load(ordering: .acquiring) { return 0 }
    // A timer that was cancelled is nothing to wake up for.
    timers.dropCancelled()
    guard let next = timers.next else { return -1 }
    // Rounded up, so that a timer is never met early and spun on.
    return Int32(clamping: Moment.now.milliseconds(until: next))
  }

  /// Has `ending` told, once for each call, when everything that is ready now has been seen to, before the loop waits
  /// again: what many events of a turn ask for is done once, together. On the loop's thread only.
  public func atEndOfTurn(_ ending: any TurnEnding) {
    preconditionOnLoop()
    endings.append(ending)
  }

  private func closeTurn() {
    guard !endings.isEmpty else { return }
    swap(&endings, &spareEndings)
    while let ending = spareEndings.popLast() { ending.turnEnds() }
  }

  private func fireTimers() {
    guard timers.next != nil else { return }
    // Those that are due now: a timer set by a handler waits for the next turn.
    let now = Moment.now
    while let timer = timers.popDue(at: now) { timer.fire() }
  }

  private func runReadyJobs() {
    // Jobs that make jobs must not keep descriptors and timers waiting for ever; but an `await` among actors of this
    // loop is a few rounds, and each is not worth a look at the descriptors.
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
    let ticket = event.data.u64
    if ticket == Self.wakeUpTicket {
      var count: eventfd_t = 0
      eventfd_read(wakeUp, &count)
      foreign.withLock { jobs in
        ready.append(contentsOf: jobs)
        jobs.removeAll(keepingCapacity: true)
      }
      return
    }
    // An event of this turn may be older than the watch: a handler before this one has closed the
    // descriptor, and its number was given to another.
    let fd = Int(UInt32(truncatingIfNeeded: ticket))
    guard fd < watches.count, let watch = watches[fd], watch.ticket == ticket else { return }
    watch.handler(Readiness(rawValue: event.events))
  }

  // MARK: Executor

  /// For the concurrency runtime: any thread may bring a job; it runs in this turn of the loop or a later one.
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

  /// For the concurrency runtime (SE-0424), of `assumeIsolated`: traps off the loop's thread.
  public func checkIsolated() { preconditionOnLoop() }

  /// Whether the caller runs on this loop's thread.
  public var isCurrent: Bool { thread.load(ordering: .acquiring) == UInt(pthread_self()) }

  /// For the concurrency runtime (SE-0471): as ``checkIsolated()``, but answers.
  public func isIsolatingCurrentContext() -> Bool? { isCurrent }

  func preconditionOnLoop() {
    precondition(isCurrent, "called off the event loop's thread")
  }

  // MARK: Descriptors

  /// Calls `handler` whenever `fd` is ready for what `interest` names, until the watch is cancelled.
  /// Level-triggered: what a handler leaves unread calls it again. On the loop's thread only.
  public func watch(
    _ fd: Int32, for interest: Readiness, _ handler: @escaping @Sendable (Readiness) -> Void
  ) -> Watch {
    preconditionOnLoop()
    watchesMade &+= 1
    let ticket = UInt64(watchesMade) << 32 | UInt64(UInt32(bitPattern: fd))
    let watch = Watch(fd: fd, ticket: ticket, interest: interest, handler: handler, loop: self)
    if Int(fd) >= watches.count {
      watches.append(contentsOf: repeatElement(nil, count: Int(fd) - watches.count + 16))
    }
    watches[Int(fd)] = watch
    control(EPOLL_CTL_ADD, watch)
    return watch
  }

  func control(_ operation: Int32, _ watch: Watch) {
    var event = epoll_event()
    event.events = watch.interest.rawValue
    event.data.u64 = watch.ticket
    epoll_ctl(epoll, operation, watch.fd, &event)
  }

  func forget(_ watch: Watch) {
    preconditionOnLoop()
    guard watches[Int(watch.fd)] === watch else { return }
    watches[Int(watch.fd)] = nil
    // Fails harmlessly when a library has closed the descriptor already.
    control(EPOLL_CTL_DEL, watch)
  }

  // MARK: Time

  /// Calls `handler` once, after `delay`, unless the timer is cancelled first. On the loop's thread only.
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

/// Who has something to do at the end of a turn of the loop. An object rather than a closure: it is handed over in each
/// turn that brings a reading.
public protocol TurnEnding: AnyObject, Sendable {
  /// Called on the loop.
  func turnEnds()
}
