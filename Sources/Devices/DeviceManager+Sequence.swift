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
    let end = Moment.now + .seconds(seconds)
    if let obstacle = await link(to: device, within: seconds) { throw RequestError("\(id): \(obstacle)") }
    // Keeps the link until the end of the sequence.
    defer { device.taskEnded() }
    var results: [CommandResult] = []
    for (channel, value) in steps {
      let waiter = Waiter<Outcome>()
      if let value {
        channel.writer?.execute(
          EncodedCommand(value: value, waitsForLink: false) { waiter.resume(.success($0)) })
      } else {
        channel.reader.read { waiter.resume(.success($0)) }
      }
      let outcome =
        (try? await waiter.value(within: Moment.now.duration(to: end)))
        ?? .timeout(reason: "timed out after \(seconds) s; a write may have taken effect")
      results.append(CommandResult(channel.property, requested: value?.value, outcome))
      if !outcome.isSuccess { break }
    }
    return results
  }

  /// - Returns: why there is no link; nil: there is one, which lasts until ``Device/taskEnded()`` is called.
  func link(to device: Device, within seconds: Int = LinkRequests.waitLimit) async -> String? {
    await withCheckedContinuation { continuation in
      device.session.withLink(within: seconds) { obstacle in
        if obstacle == nil { device.taskBegins() }
        continuation.resume(returning: obstacle)
      }
    }
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
