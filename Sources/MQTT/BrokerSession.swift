import EventLoop

/// A connection for one purpose, such as a check of a broker, and what that has learned by it.
@LoopActor package final class BrokerSession<State> {
  package let client: MQTTClient
  /// What was learned; also changed by what the owner learns elsewhere.
  package var state: State {
    didSet { if let waiting, waiting.isMet(state) { waiting.waiter.resume(.success(())) } }
  }
  private let add: (inout State, MQTTEvent) -> Void
  private var running: Task<Void, Never>?
  private var waiting: (isMet: (State) -> Bool, waiter: Waiter<Void>)?

  /// - Parameter add: changes the state by an event.
  package init(_ options: MQTTOptions, _ state: State, _ add: @escaping (inout State, MQTTEvent) -> Void) {
    self.state = state
    self.add = add
    client = MQTTClient(options: options) { _, _ in }
  }

  /// Connects, and subscribes to `filters`.
  package func start(_ filters: [TopicFilter] = []) {
    client.setHandler { [weak self] event in
      guard let self else { return }
      add(&state, event)
    }
    client.subscribe(filters)
    running = loop.task { [client] in await client.run() }
  }

  /// Returns when what was published is acknowledged.
  package func stop() async {
    await client.stop(deadline: .seconds(2))
    running?.cancel()
  }

  /// Whether `condition` holds before `limit` is over.
  package func wait(_ limit: Duration, until condition: @escaping (State) -> Bool) async -> Bool {
    if condition(state) { return true }
    let waiter = Waiter<Void>()
    waiting = (condition, waiter)
    defer { waiting = nil }
    return (try? await waiter.value(within: limit)) != nil
  }
}
