import EventLoop

/// The values that one visit waits for: the first ones of properties that are only notified.
@LoopActor final class Visit {
  /// The properties of which no value has arrived; nil: the link has ended.
  private var missing: [String]? = []
  private var waiting: Waiter<Void>?

  /// How long a visit waits for the values.
  static let limit = Duration.seconds(10)

  func awaits(_ property: String) { missing?.append(property) }

  /// A value of the property has arrived, or none will.
  func awaitsNoLonger(_ property: String) {
    missing?.removeAll { $0 == property }
    if missing?.isEmpty == true { waiting?.resume(.success(())) }
  }

  /// Waits for the values.
  /// - Returns: the properties of which none has arrived in time; empty if the link has ended before.
  func missingValues(within limit: Duration = Visit.limit) async -> [String] {
    if missing?.isEmpty == false {
      let all = Waiter<Void>()
      waiting = all
      _ = try? await all.value(within: limit)
    }
    return missing ?? []
  }

  /// The link has ended.
  func end() {
    missing = nil
    waiting?.resume(.success(()))
  }
}
