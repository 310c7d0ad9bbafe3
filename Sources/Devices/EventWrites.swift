import EventLoop
import GATT

/// The writes of an event property of one device: in order, each once, never repeated and never superseded.
///
/// A pure machine. Each input returns the actions to run, in order. One write is in flight at most.
struct EventWrites: Sendable {
  struct Request: Sendable {
    let value: EncodedValue
    let command: Command
  }

  enum Action: Sendable {
    /// Write the value, then call ``EventWrites/wrote(_:_:)``.
    case write(EncodedValue, number: UInt64)
    case answer(Request, Outcome)
    /// The device does not answer: end the link.
    case unresponsive
  }

  /// Writes that wait; more are refused.
  static let capacity = 64

  private struct Waiting {
    let request: Request
    var isPendingReported = false

    var timeToLive: TimeToLive? { request.command.timeToLive }
  }

  private var isLinked = false
  private var waiting: [Waiting] = []
  private var inFlight: Request?
  private var number: UInt64 = 0
  /// What a write that succeeded is answered with.
  private let success: Outcome

  init(mode: Property.WriteMode) {
    success = mode == .command ? .sent : .accepted
  }

  /// When ``expire(at:)`` is to be called. May change with every input.
  var deadline: Moment? { waiting.compactMap { $0.timeToLive?.deadline }.min() }

  mutating func linkUp() -> [Action] {
    isLinked = true
    return proceed()
  }

  /// The connection is gone. Harmless when repeated.
  mutating func linkDown() -> [Action] {
    guard isLinked else { return [] }
    isLinked = false
    var actions: [Action] = []
    if let inFlight {
      actions.append(
        .answer(inFlight, .timeout(reason: "the link was lost during the write: it may have taken effect")))
    }
    inFlight = nil
    for index in waiting.indices {
      let request = waiting[index].request
      if waiting[index].timeToLive == nil {
        actions.append(.answer(request, .failed(reason: "the device went offline")))
      } else if !waiting[index].isPendingReported {
        waiting[index].isPendingReported = true
        actions.append(.answer(request, .pending))
      }
    }
    waiting.removeAll { $0.timeToLive == nil }
    return actions
  }

  mutating func command(_ request: Request) -> [Action] {
    guard waiting.count < Self.capacity else {
      return [.answer(request, .rejected(reason: "\(Self.capacity) writes are waiting already"))]
    }
    if !isLinked, request.command.timeToLive == nil {
      return [.answer(request, .failed(reason: "the device is offline; a ttl would keep the command"))]
    }
    waiting.append(Waiting(request: request, isPendingReported: !isLinked))
    return isLinked ? proceed() : [.answer(request, .pending)]
  }

  /// Harmless when nothing is due.
  mutating func expire(at now: Moment) -> [Action] {
    var actions: [Action] = []
    waiting.removeAll { waiting in
      guard let timeToLive = waiting.timeToLive, timeToLive.deadline <= now else { return false }
      actions.append(
        .answer(waiting.request, .timeout(reason: "not applied within its ttl of \(timeToLive.seconds) s")))
      return true
    }
    return actions
  }

  /// How a write ended; nil: it succeeded.
  mutating func wrote(_ number: UInt64, _ failure: WriteFailure?) -> [Action] {
    guard number == self.number, let request = inFlight else { return [] }
    inFlight = nil
    switch failure {
    case nil: return [.answer(request, success)] + proceed()
    case .linkLost:
      inFlight = request
      return linkDown()
    case .timeout:
      return [.answer(request, .timeout(reason: "the write was not answered in time")), .unresponsive]
        + linkDown()
    case .failed(let reason):
      return [.answer(request, .failed(reason: "the write failed: \(reason)"))] + proceed()
    }
  }

  /// Nothing will be written any more.
  mutating func abandon(reason: String) -> [Action] {
    let all = (inFlight.map { [$0] } ?? []) + waiting.map(\.request)
    inFlight = nil
    waiting = []
    isLinked = false
    return all.map { .answer($0, .failed(reason: reason)) }
  }

  private mutating func proceed() -> [Action] {
    guard isLinked, inFlight == nil, !waiting.isEmpty else { return [] }
    let request = waiting.removeFirst().request
    inFlight = request
    number += 1
    return [.write(request.value, number: number)]
  }
}
