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
}
