import Configuration
import EventLoop
import GATT
import JSON

/// A step of a sequence: reads and writes of one device, on one link.
package enum SequenceStep: Sendable, Equatable {
  /// A string is read as the payload of a command: `"2000"` is a number if the property's values are numbers.
  case write(property: String, value: JSONValue)
  case read(property: String)
}

/// The result of a step.
package struct StepResult: Sendable {
  package let property: Property
  /// The value that was to be written; nil for a read.
  package let requested: Value?
  package let outcome: Outcome

  package var isSuccess: Bool {
    switch outcome {
    case .applied, .adjusted, .accepted, .sent, .read: true
    case .rejected, .pending, .superseded, .failed, .timeout: false
    }
  }
}

extension DeviceManager {
  /// Maximum number of steps of a sequence.
  package static let mostSteps = 32

  /// Carries out the steps in order, on one link, until one fails. A device that is connected on demand is connected
  /// for it.
  ///
  /// - Parameter seconds: the time limit for everything, including the connect.
  /// - Returns: the result of each step that was begun; of these only the last one may have failed.
  /// - Throws: if no step was begun.
  package func sequence(
    _ steps: [SequenceStep], on id: DeviceID, within seconds: Int
  ) async throws(RequestError) -> [StepResult] {
    let device = try requireDevice(id)
    let steps = try resolve(steps, for: device)
    guard !device.isInSequence else { throw RequestError("another sequence of \(id) is being carried out") }
    device.isInSequence = true
    defer { device.isInSequence = false }
    let limit = Deadline(after: seconds, loop)
    if let obstacle = await link(to: device, limit) { throw RequestError("\(id): \(obstacle)") }
    // Keeps the link until the end of the sequence.
    defer { device.taskEnded() }
    var results: [StepResult] = []
    for step in steps {
      let outcome = await limit.outcome(on: self) { reply in step.begin(on: device, reply) }
      results.append(StepResult(property: step.property, requested: step.value?.value, outcome: outcome))
      if results.last?.isSuccess == false { break }
    }
    return results
  }

  /// - Returns: why there is no link; nil: there is one, which lasts until ``Device/taskEnded()`` is called.
  private func link(to device: Device, _ limit: Deadline) async -> String? {
    let isLinked = await limit.outcome(on: self) { reply in
      device.session.withLink { obstacle in
        if let obstacle { return _ = reply(.failed(reason: obstacle)) }
        device.taskBegins()
        // The time is over: nothing uses the link.
        if !reply(.accepted) { device.taskEnded() }
      }
    }
    return isLinked.reason
  }

  private struct Step: Sendable {
    let index: Int
    let property: Property
    /// Nil: it is read.
    let value: EncodedValue?

    func begin(on device: Device, _ reply: @escaping @Sendable (Outcome) -> Bool) {
      let channel = device.channels[index]
      guard let value else { return channel.read { _ = reply($0) } }
      channel.writer?.execute(Command(value, waitsForLink: false) { _ = reply($0) })
    }
  }

  /// Checks every step before the first one is begun.
  private func resolve(_ steps: [SequenceStep], for device: Device) throws(RequestError) -> [Step] {
    var resolved: [Step] = []
    for (index, step) in steps.enumerated() {
      resolved.append(try resolve(step, at: ConfigurationPath.root.key("steps").index(index), device))
    }
    return resolved
  }

  private func resolve(
    _ step: SequenceStep, at path: ConfigurationPath, _ device: Device
  ) throws(RequestError) -> Step {
    let profile = device.description.profile
    func index(_ name: String, _ path: ConfigurationPath) throws(RequestError) -> Int {
      if let index = profile.index(ofPropertyNamed: name) { return index }
      let names = profile.properties.map(\.name)
      let near = nearest(to: name, among: names)
      let hint = near.map { "did you mean \($0)?" } ?? "properties in use: \(names.joined(separator: ", "))"
      throw RequestError(
        .invalid, path.error("\(device.id) has no property \(Excerpt(name))", hint: hint).description)
    }
    switch step {
    case .read(let name):
      let index = try index(name, path.key("read"))
      let property = profile.properties[index]
      if let problem = property.readProblem {
        throw RequestError(.invalid, path.key("read").error(problem).description)
      }
      return Step(index: index, property: property, value: nil)
    case .write(let name, let json):
      let path = path.key("write")
      let index = try index(name, path.key("property"))
      let property = profile.properties[index]
      do throws(ValueProblem) {
        return Step(index: index, property: property, value: try property.value(ofPayload: json.payload))
      } catch {
        let key = if case .notWritable = error { "property" } else { "value" }
        throw RequestError(.invalid, path.key(key).error(error.reason).description)
      }
    }
  }
}

/// The time limit of a sequence.
private struct Deadline: Sendable {
  private let seconds: Int
  private let moment: Moment
  private let loop: EventLoop

  init(after seconds: Int, _ loop: EventLoop) {
    self.seconds = seconds
    self.loop = loop
    moment = .now + .seconds(seconds)
  }

  /// The outcome of what `body` begins, or a time-out.
  ///
  /// - Parameter body: gets a reply to call, which returns false if the time is over.
  func outcome(
    on engine: isolated DeviceManager,
    of body: (_ reply: @escaping @Sendable (Outcome) -> Bool) -> Void
  ) async -> Outcome {
    let waiter = Waiter<Outcome>()
    let timer = loop.timer(after: max(.zero, Moment.now.duration(to: moment))) { [seconds] in
      waiter.resume(
        .success(.timeout(reason: "timed out after \(seconds) s; a write may have taken effect")))
    }
    body { waiter.resume(.success($0)) }
    let outcome = try? await waiter.value()
    timer.cancel()
    return outcome ?? .failed(reason: "cancelled")
  }
}
