import BlueZ
import EventLoop

/// The values that one visit waits for: the first ones of properties that are only notified.
@LoopActor final class Visit {
  private var firstValues: [(property: String, value: Waiter<Void>)] = []
  /// Whether the link has ended.
  private var hasEnded = false

  /// - Parameter value: resumed by the first value of the property, if it comes before the end of the visit.
  func add(_ value: Waiter<Void>, of property: String) {
    // The link may have ended just after the subscription was answered.
    if hasEnded {
      value.resume(.failure(CancellationError()))
    } else {
      firstValues.append((property, value))
    }
  }

  /// How long a visit waits for the values.
  private static let limit = Duration.seconds(10)

  /// Waits for the values.
  /// - Returns: the properties of which none has arrived in time; empty if the link has ended before.
  func missingValues(on central: Central) async -> [String] {
    guard !firstValues.isEmpty else { return [] }
    let timer = loop.timer(after: Self.limit) { [weak self] in self?.stopWaiting() }
    var missing: [String] = []
    for (property, value) in firstValues {
      do {
        try await value.value()
      } catch {
        missing.append(property)
      }
    }
    timer.cancel()
    return hasEnded ? [] : missing
  }

  /// The link has ended.
  func end() {
    hasEnded = true
    stopWaiting()
  }

  /// The time for the values is over.
  func stopWaiting() {
    for (_, value) in firstValues { value.resume(.failure(CancellationError())) }
    firstValues = []
  }
}
