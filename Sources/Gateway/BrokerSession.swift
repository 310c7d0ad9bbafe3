import EventLoop
import MQTT

/// A connection to the broker for one command, and what that has learned from it.
@LoopActor final class BrokerSession<State> {
  let client: MQTTClient
  var state: State
  private let add: (inout State, MQTTEvent) -> Void
  private var running: Task<Void, Never>?
  private var condition: (State) -> Bool = { _ in false }
  private var waiter: Waiter<Bool>?

  /// - Parameter add: changes the state by an event.
  init(_ options: MQTTOptions, _ state: State, _ add: @escaping (inout State, MQTTEvent) -> Void) {
    self.state = state
    self.add = add
    client = MQTTClient(options: options) { _, _ in }
  }

  func start(_ filters: [TopicFilter]) {
    client.setHandler { [weak self] in self?.receive($0) }
    client.subscribe(filters)
    running = loop.task { [client] in _ = try? await client.run() }
  }

  /// Returns when what was published is acknowledged.
  func stop() async {
    await client.stop(deadline: .seconds(2))
    running?.cancel()
  }

  /// Whether `condition` holds before `limit` is over.
  func wait(_ limit: Duration, until condition: @escaping (State) -> Bool) async -> Bool {
    if condition(state) { return true }
    let waiter = Waiter<Bool>()
    (self.condition, self.waiter) = (condition, waiter)
    let timer = loop.timer(after: limit) { waiter.resume(.success(false)) }
    let holds = (try? await waiter.value()) ?? false
    timer.cancel()
    self.waiter = nil
    return holds
  }

  private func receive(_ event: MQTTEvent) {
    add(&state, event)
    if let waiter, condition(state) { waiter.resume(.success(true)) }
  }
}
