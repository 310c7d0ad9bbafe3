extension EventLoop {
  /// Begins a task of `actor`, which lives on this loop: to be used there instead of `Task { … }`.
  ///
  /// A task that does not prefer an executor resumes from every continuation in the global pool of threads and
  /// hops from there to its actor: two switches of threads for each `await`, and the pool's threads for good.
  public func task<Owner: Actor>(
    of actor: Owner, _ body: @escaping @Sendable (isolated Owner) async -> Void
  ) {
    Task(executorPreference: self) { await body(actor) }
  }

  /// Begins a task that runs on this loop, for what is no actor's.
  public func task(_ body: @escaping @Sendable () async -> Void) {
    Task(executorPreference: self, operation: body)
  }

  /// Calls `body` inside `actor`, which lives on this loop, at once: `assumeIsolated` for the path of every reading.
  ///
  /// What `assumeIsolated` costs there is the search of the concurrency runtime for the present executor, and four
  /// allocations for the closure; this compares threads, and allocates nothing as long as `body` captures nothing: what
  /// it needs is handed to it as `argument`.
  @inlinable
  public func enter<Owner: Actor, Argument>(
    _ actor: Owner, _ argument: Argument, _ body: @escaping @Sendable (isolated Owner, Argument) -> Void
  ) {
    precondition(isCurrent, "an actor entered off its loop's thread")
    // As the standard library's `assumeIsolated` does: the isolation is known here, and not part of the call.
    unsafeBitCast(body, to: (@Sendable (Owner, Argument) -> Void).self)(actor, argument)
  }
}
