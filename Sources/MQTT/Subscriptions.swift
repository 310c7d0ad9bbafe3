/// The subscriptions of a client, in the order in which they were made. Pure.
struct Subscriptions {
  /// The contents of a SUBSCRIBE packet.
  struct Request: Equatable {
    var filters: [TopicFilter]
    let options: SubscribeOptions
  }

  /// The most filters in one packet: AWS IoT accepts no more.
  private static let mostFilters = 8

  private struct Subscription {
    let options: SubscribeOptions
    let order: UInt64
    /// The reason code if the broker has refused it on this connection.
    var refusal: Int32?
  }

  private var subscriptions: [TopicFilter: Subscription] = [:]
  private var last: UInt64 = 0
  /// Awaiting SUBACK, by packet identifier.
  private var unacknowledged: [Int32: [TopicFilter]] = [:]

  /// The packets of a new connection: the retained messages of earlier subscriptions arrive first.
  var all: [Request] { requests { _ in true } }

  /// The packets that ask again for what the broker has refused on this connection.
  var refused: [Request] { requests { $0.refusal != nil } }

  private func requests(where isIncluded: (Subscription) -> Bool) -> [Request] {
    let sorted = subscriptions.filter { isIncluded($1) }.sorted { $0.value.order < $1.value.order }
    return Self.requests(sorted.map { ($0.key, $0.value.options) })
  }

  /// Why the broker has refused the filter on this connection.
  func refusal(of filter: TopicFilter) -> Int32? { subscriptions[filter]?.refusal }

  /// A filter that is already subscribed to is subscribed to again, as the last one.
  /// - Returns: the packets to send.
  mutating func add(_ filters: [TopicFilter], _ options: SubscribeOptions) -> [Request] {
    for filter in filters {
      last += 1
      subscriptions[filter] = Subscription(options: options, order: last)
    }
    return Self.requests(filters.map { ($0, options) })
  }

  /// - Returns: those that were subscribed to.
  mutating func remove(_ filters: [TopicFilter]) -> [TopicFilter] {
    filters.filter { subscriptions.removeValue(forKey: $0) != nil }
  }

  private static func requests(_ list: [(filter: TopicFilter, options: SubscribeOptions)]) -> [Request] {
    var requests: [Request] = []
    for (filter, options) in list {
      if let last = requests.last, last.options == options, last.filters.count < mostFilters {
        requests[requests.count - 1].filters.append(filter)
      } else {
        requests.append(Request(filters: [filter], options: options))
      }
    }
    return requests
  }

  mutating func sent(_ request: Request, as identifier: Int32) {
    unacknowledged[identifier] = request.filters
  }

  /// A SUBACK was received, with a reason code for each filter.
  mutating func acknowledged(_ identifier: Int32, _ reasons: [Int32]) -> [(
    filter: TopicFilter, reason: Int32
  )] {
    let acknowledged = zip(unacknowledged.removeValue(forKey: identifier) ?? [], reasons).map { ($0, $1) }
    for (filter, reason) in acknowledged { subscriptions[filter]?.refusal = reason < 0x80 ? nil : reason }
    return acknowledged
  }

  mutating func disconnected() {
    unacknowledged = [:]
    for index in subscriptions.values.indices { subscriptions.values[index].refusal = nil }
  }
}
