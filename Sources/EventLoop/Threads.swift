import Glibc

/// Runs `body` on a new thread; false if no thread could be created, and `body` has not run.
public func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
  final class Box: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  // Retained here, released once: by the new thread, or below if there is none.
  let box = Unmanaged.passRetained(Box(body))
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  var thread = pthread_t()
  let failure = Signals.blockedForNewThread {
    pthread_create(
      &thread, &attributes,
      { raw in
        Unmanaged<Box>.fromOpaque(raw!).takeRetainedValue().body()
        return nil
      }, box.toOpaque())
  }
  pthread_attr_destroy(&attributes)
  if failure != 0 { box.release() }
  return failure == 0
}
