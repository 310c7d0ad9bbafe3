import Glibc

/// State protected by a mutex, with a condition variable to wait for changes by other threads.
final class Monitor<State: Sendable>: @unchecked Sendable {
  // @unchecked: `state` is only accessed under the mutex. Mutex and condition variable must not move in memory.
  private var state: State
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init(_ state: State) {
    self.state = state
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(changed, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(changed)
    pthread_mutex_destroy(mutex)
    changed.deallocate()
    mutex.deallocate()
  }

  func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&state)
  }

  /// Like ``withLock(_:)``, for changes that ``wait(atMost:until:)`` waits for.
  func notify<Result>(_ body: (inout State) -> Result) -> Result {
    defer { pthread_cond_broadcast(changed) }
    return withLock(body)
  }

  /// Waits until `condition` holds, for at most `limit`.
  func wait(atMost limit: Duration, until condition: (State) -> Bool) {
    var deadline = timespec()
    clock_gettime(CLOCK_MONOTONIC, &deadline)
    let (seconds, attoseconds) = max(.zero, min(limit, .seconds(86_400))).components
    deadline.tv_sec += Int(seconds)
    deadline.tv_nsec += Int(attoseconds / 1_000_000_000)
    if deadline.tv_nsec >= 1_000_000_000 {
      deadline.tv_sec += 1
      deadline.tv_nsec -= 1_000_000_000
    }
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while !condition(state), pthread_cond_timedwait(changed, mutex, &deadline) != ETIMEDOUT {}
  }
}
