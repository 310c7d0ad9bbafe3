import Configuration
import EventLoop
import GATT
import JSON

/// A step of a sequence: reads and writes of one device, on one link.
package struct SequenceStep: Sendable, Equatable {
  let property: String
  /// The value to write, as in ``Command``; nil: the property is read.
  let value: JSONValue?

  package init(_ property: String, _ value: JSONValue? = nil) {
    (self.property, self.value) = (property, value)
  }
}

extension DeviceManager {
  /// Maximum number of steps of a sequence.
  package nonisolated static let mostSteps = 32

  /// Carries out the steps in order, on one link, until one fails. A device that is connected on demand is connected
  /// for it.
  ///
  /// - Parameter seconds: the time limit for everything, including the connect.
  /// - Returns: the result of each step that was begun; of these only the last one may have failed.
  /// - Throws: if no step was begun.
  package func sequence(
    _ steps: [SequenceStep], on id: DeviceID, within seconds: Int
  ) async throws(RequestError) -> [CommandResult] {
    let device = try requireDevice(id)
    let steps = try resolve(steps, for: device)
    guard !device.isInSequence else { throw RequestError("another sequence of \(id) is being carried out") }
    device.isInSequence = true
    defer { device.isInSequence = false }
    let limit = Deadline(after: seconds)
    if let obstacle = await link(to: device, limit) { throw RequestError("\(id): \(obstacle)") }
    // Keeps the link until the end of the sequence.
    defer { device.taskEnded() }
    var results: [CommandResult] = []
    for (channel, value) in steps {
      let outcome = await limit.outcome { reply in
        guard let value else { return channel.reader.read { _ = reply($0) } }
        channel.writer?.execute(EncodedCommand(value: value, waitsForLink: false) { _ = reply($0) })
      }
      results.append(CommandResult(channel.property, requested: value?.value, outcome))
      if !outcome.isSuccess { break }
    }
    return results
  }

  /// - Returns: why there is no link; nil: there is one, which lasts until ``Device/taskEnded()`` is called.
  func link(to device: Device, _ limit: Deadline) async -> String? {
    let isLinked = await limit.outcome { reply in
      device.session.withLink { obstacle in
        if let obstacle { return _ = reply(.failed(reason: obstacle)) }
        device.taskBegins()
        // The time is over: nothing uses the link.
        if !reply(.accepted) { device.taskEnded() }
      }
    }
    if case .timeout = isLinked {
      return LinkRequests.timeout(after: limit.seconds, device.description.lastError)
    }
    return isLinked.reason
  }

  /// Checks every step before the first one is begun.
  private func resolve(
    _ steps: [SequenceStep], for device: Device
  ) throws(RequestError) -> [(channel: Channel, value: EncodedValue?)] {
    var resolved: [(channel: Channel, value: EncodedValue?)] = []
    for (index, step) in steps.enumerated() {
      do throws(RequestError) {
        let channel = try channel(step.property, of: device)
        var value: EncodedValue?
        if let json = step.value {
          value = try channel.property.value(ofCommand: json)
        } else {
          try channel.property.checkReadable()
        }
        resolved.append((channel, value))
      } catch {
        throw error.at(.root.key("steps").index(index))
      }
    }
    return resolved
  }
}

/// The time limit of a request: of a sequence, or of the wait for a link.
@LoopActor struct Deadline {
  let seconds: Int
  private let moment: Moment

  init(after seconds: Int) {
    self.seconds = seconds
    moment = .now + .seconds(seconds)
  }

  /// The outcome of what `body` begins, or a time-out.
  ///
  /// - Parameter body: gets a reply to call, which returns false if the time is over.
  func outcome(of body: (_ reply: @escaping @LoopActor (Outcome) -> Bool) -> Void) async -> Outcome {
    let waiter = Waiter<Outcome>()
    body { waiter.resume(.success($0)) }
    do {
      return try await waiter.value(within: Moment.now.duration(to: moment))
        ?? .timeout(reason: "timed out after \(seconds) s; a write may have taken effect")
    } catch {
      return .failed(reason: "cancelled")
    }
  }
}
