import Configuration
import GATT
import JSON

/// The dialogue of `init`: from the answers so far to the next question, and in the end to what is written. It neither
/// reads nor writes anything itself.
struct SetupDialogue {
  enum Step: Equatable {
    case ask(SetupQuestion)
    /// Look for micro:bits; then ``found(_:)`` or ``scanFailed(_:)``.
    case scan
    /// Then ``brokerTried(_:)``.
    case tryBroker(Configuration)
    /// Then ``written(_:)``.
    case write(SetupPlan)
    /// Starts the service, or restarts it.
    case useService(restart: Bool)
    case end([String])
    case fail(CommandFailure)
  }

  let present: PresentConfiguration
  /// The name of the copy of the present file.
  let backup: String
  /// Answers from the command line, which are used once.
  var given: [SetupTopic: String]
  /// Whether nobody is there to answer: presets are used.
  let isUnattended: Bool
  /// Whether the service that uses the configuration can read a file.
  let isReadable: (String) -> Bool

  private var answered: Set<SetupTopic> = []
  private var asked: SetupQuestion?
  /// Nil: not looked for yet.
  private(set) var candidates: [SetupCandidate]?
  /// Why micro:bits cannot be looked for.
  private(set) var scanProblem: String?
  var devices: [SetupDevice] = []
  /// The indices of devices whose name cannot be used in topics.
  var namesWithoutID: Set<Int> = []
  private(set) var servesLater = false
  var broker: SetupBroker
  private var isBrokerAccepted: Bool
  /// What the try has shown; empty: the broker can be used.
  private(set) var brokerTrouble: [String] = []
  private(set) var service = ServiceUnit.State.absent

  /// - Parameters:
  ///   - devices: those that the command line names; nil: the user chooses.
  ///   - triesBroker: whether the broker is tried before the configuration is written.
  init(
    _ present: PresentConfiguration, backup: String, given: [SetupTopic: String] = [:],
    devices: [SetupDevice]? = nil, password: SetupBroker.Password? = nil, triesBroker: Bool = true,
    isUnattended: Bool = false, isReadable: @escaping (String) -> Bool = { _ in true }
  ) {
    self.present = present
    self.backup = backup
    self.given = given
    self.isUnattended = isUnattended
    self.isReadable = isReadable
    broker = present.broker
    isBrokerAccepted = !triesBroker
    if let devices {
      self.devices = devices
      answered.insert(.devices)
    }
    if let password {
      broker.password = password
      answered.insert(.password)
    }
  }

  func isAnswered(_ topic: SetupTopic) -> Bool { answered.contains(topic) }

  // MARK: Inputs

  mutating func start() -> Step { next() }

  /// An answer to the last question. If it cannot be used, the question is asked again, with the reason.
  mutating func answer(_ text: String) -> Step {
    guard let question = asked else { return next() }
    do throws(SetupRefusal) {
      return try take(text, question)
    } catch {
      var again = question
      again.lines = [error.reason]
      return .ask(again)
    }
  }

  mutating func found(_ candidates: [SetupCandidate]) -> Step {
    self.candidates = candidates
    return next()
  }

  mutating func scanFailed(_ problem: String) -> Step {
    (candidates, scanProblem) = ([], problem)
    return next()
  }

  /// - Parameter trouble: why the broker cannot be used; empty if it can.
  mutating func brokerTried(_ trouble: [String]) -> Step {
    brokerTrouble = trouble
    isBrokerAccepted = trouble.isEmpty
    return next()
  }

  /// - Parameter service: whether there is a service that uses this configuration.
  mutating func written(_ service: ServiceUnit.State) -> Step {
    self.service = service
    if service == .absent { return .end(closing) }
    // Nothing has changed: a restart would only end the links.
    if plan.isEmpty, service == .running { return .end([]) }
    return ask(.service)
  }

  // MARK: Steps

  /// The questions that the answers so far require.
  private var topics: [SetupTopic] {
    let names: [SetupTopic] = devices.indices.flatMap { index -> [SetupTopic] in
      [.name(index)] + (namesWithoutID.contains(index) ? [.id(index)] : []) + [.room(index)]
    }
    return [.devices] + names + [.later, .host, .tls] + (broker.isEncrypted ? [.caFile] : [])
      + [.port, .username] + (broker.username == nil ? [] : [.password])
  }

  mutating func next() -> Step {
    if let topic = topics.first(where: { !answered.contains($0) }) {
      return topic == .devices && candidates == nil ? .scan : ask(topic)
    }
    if !isBrokerAccepted {
      if !brokerTrouble.isEmpty { return ask(.brokerTrouble) }
      switch configuration {
      case .success(let configuration): return .tryBroker(configuration)
      case .failure(let failure): return .fail(failure)
      }
    }
    if case .failure(let failure) = configuration { return .fail(failure) }
    if !plan.isEmpty, !answered.contains(.confirmation) { return ask(.confirmation) }
    return .write(plan)
  }

  /// Takes the answer that is given already, or asks.
  private mutating func ask(_ topic: SetupTopic) -> Step {
    let question = question(topic)
    let isGiven = given[topic] != nil
    guard let text = given.removeValue(forKey: topic) ?? (isUnattended ? question.preset : nil) else {
      if isUnattended { return .fail(CommandFailure(.unavailable, unattendedFailure(question))) }
      asked = question
      return .ask(question)
    }
    do throws(SetupRefusal) {
      return try take(text, question)
    } catch {
      let option = isGiven ? topic.option : nil
      return .fail(CommandFailure(.usage, (option.map { "\($0): " } ?? "") + error.reason))
    }
  }

  private mutating func take(_ text: String, _ question: SetupQuestion) throws(SetupRefusal) -> Step {
    let answer = question.isSecret ? text : text.trimmed
    switch question.topic {
    case .devices:
      guard try choose(answer.isEmpty ? question.preset ?? "" : answer) else { return scanAgain() }
    case .name(let index): try setName(answer, of: index)
    case .id(let index): try setID(answer.isEmpty ? question.preset ?? "" : answer, of: index)
    case .room(let index): devices[index].room = try optional(answer, question, Self.checkLabel)
    case .later:
      servesLater = try isYes(answer, question)
      if !servesLater, devices.isEmpty, !present.hasOwnEntries {
        throw SetupRefusal("Then no micro:bit would be used at all. Please answer y.")
      }
    case .host:
      if !answer.isEmpty {
        try check(["host": .string(answer)])
        broker.host = answer
      }
    case .tls: setEncryption(try isYes(answer, question))
    case .caFile:
      let file = try optional(answer, question) { _ throws(SetupRefusal) in }
      // A typed name is meant from where the user is, one in config.json from there.
      broker.caFile = file == question.preset ? file : try file.map(readable)
    case .port: try setPort(answer.isEmpty ? question.preset ?? "" : answer)
    case .username: try setUsername(answer, question)
    case .password:
      let typed = Array(answer.utf8)
      if !typed.isEmpty {
        broker.password = typed == present.password ? present.broker.password : .typed(typed)
      }
    case .brokerTrouble: return try handleTrouble(answer)
    case .confirmation:
      guard try isYes(answer, question) else { return .end(["Nothing was changed."]) }
    case .service:
      guard try isYes(answer, question) else { return .end(closing) }
      return .useService(restart: service == .running)
    }
    answered.insert(question.topic)
    return next()
  }

  private mutating func scanAgain() -> Step {
    (candidates, scanProblem) = (nil, nil)
    return .scan
  }

  private mutating func handleTrouble(_ answer: String) throws(SetupRefusal) -> Step {
    switch answer.lowercased() {
    case "t", "try": brokerTrouble = []
    case "c", "change":
      brokerTrouble = []
      answered.subtract([.host, .tls, .caFile, .port, .username, .password])
    case "k", "keep": isBrokerAccepted = true
    default: throw SetupRefusal("Please answer t, c or k.")
    }
    return next()
  }
}
