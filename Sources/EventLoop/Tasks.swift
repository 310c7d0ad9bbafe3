extension EventLoop {
  /// Starts a task of `actor`, which must live on this loop; use it instead of `Task { … }`.
  ///
  /// A task without this executor preference resumes each continuation in the global thread pool and switches from
  /// there to its actor: two thread switches per `await`, and pool threads that never end.
  public func task<Owner: Actor>(
    of actor: Owner, _ body: @escaping @Sendable (isolated Owner) async -> Void
  ) {
    Task(executorPreference: self) { await body(actor) }
  }

  /// Starts a task that runs on this loop and belongs to no actor.
  public func task(_ body: @escaping @Sendable () async -> Void) {
    Task(executorPreference: self, operation: body)
  }

  /// Calls `body` inside `actor`, which must live on this loop: a fast `assumeIsolated` for the path of every reading.
  ///
  /// `assumeIsolated` makes the runtime search for the current executor, and allocates four times for the closure. This
  /// compares threads, and allocates nothing if `body` captures nothing: pass what it needs as `argument`.
  @inlinable
  public func enter<Owner: Actor, Argument>(
    _ actor: Owner, _ argument: Argument, _ body: @escaping @Sendable (isolated Owner, Argument) -> Void
  ) {
    precondition(isCurrent, "an actor entered off its loop's thread")
    // As in the standard library's `assumeIsolated`: removes the isolation, just checked, from the function's type.
    unsafeBitCast(body, to: (@Sendable (Owner, Argument) -> Void).self)(actor, argument)
  }
}
