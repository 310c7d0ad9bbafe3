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
  /// The program, as the user has called it.
  let program: String
  /// Answers from the command line, which are used once.
  private(set) var given: [SetupTopic: String]
  /// Whether nobody is there to answer: presets are used.
  private let isUnattended: Bool
  /// Whether the service that uses the configuration can read a file.
  private let isReadable: (String) -> Bool

  private var answered: Set<SetupTopic> = []
  private var asked: SetupQuestion?
  private(set) var microbits: SetupMicrobits
  private(set) var broker: SetupBroker
  private var trial: Trial
  private(set) var service = ServiceUnit.State.absent
  private(set) var isRunning = false

  /// The trial of the broker.
  private enum Trial {
    case due
    /// The broker cannot be used, and why.
    case failed([String])
    /// It can be used, or shall be, or is not tried.
    case done
  }

  /// What the trial of the broker has shown; empty: that it can be used.
  var brokerTrouble: [String] { if case .failed(let trouble) = trial { trouble } else { [] } }

  /// - Parameters:
  ///   - devices: those that the command line names; nil: the user chooses.
  ///   - triesBroker: whether the broker is tried before the configuration is written.
  init(
    _ present: PresentConfiguration, backup: String, program: String = "microbit-gateway",
    given: [SetupTopic: String] = [:],
    devices: [SetupDevice]? = nil, password: SetupBroker.Password? = nil, triesBroker: Bool = true,
    isUnattended: Bool = false, isReadable: @escaping (String) -> Bool = { _ in true }
  ) {
    self.present = present
    self.backup = backup
    self.program = program
    self.given = given
    self.isUnattended = isUnattended
    self.isReadable = isReadable
    microbits = SetupMicrobits(present, devices ?? [])
    broker = present.broker
    trial = triesBroker ? .due : .done
    if devices != nil { answered.insert(.devices) }
    if let password {
      broker.setPassword(password)
      answered.insert(.password)
    }
  }

  // MARK: Inputs

  /// Those that the command line names are looked for too: a wrong address is noticed.
  mutating func start() -> Step { microbits.devices.isEmpty ? next() : .scan }

  /// An answer to the last question. If it cannot be used, the question is asked again, with the reason.
  mutating func answer(_ text: String) -> Step {
    guard let question = asked else { return next() }
    do throws(SetupRefusal) {
      return try apply(text, to: question)
    } catch {
      var again = question
      again.lines = [error.reason]
      return .ask(again)
    }
  }

  mutating func found(_ candidates: [SetupCandidate]) -> Step {
    microbits.found(candidates)
    return next()
  }

  mutating func scanFailed(_ problem: String) -> Step {
    microbits.scanFailed(problem)
    return next()
  }

  /// - Parameter trouble: why the broker cannot be used; empty if it can.
  mutating func brokerTried(_ trouble: [String]) -> Step {
    trial = trouble.isEmpty ? .done : .failed(trouble)
    return next()
  }

  /// - Parameters:
  ///   - service: whether there is a service that uses this configuration.
  ///   - isRunning: whether a gateway with its id runs.
  mutating func written(_ service: ServiceUnit.State, isRunning: Bool = false) -> Step {
    (self.service, self.isRunning) = (service, isRunning)
    if service == .absent { return .end(closing) }
    // Nothing has changed: a restart would only end the links.
    if plan.isEmpty, service == .running { return .end([]) }
    return ask(.service)
  }

  // MARK: Steps

  /// The questions that the answers so far require.
  private var topics: [SetupTopic] {
    [.devices] + microbits.topics + [.later, .host, .tls] + (broker.isEncrypted ? [.caFile] : [])
      + [.port, .username] + (broker.username == nil ? [] : [.password])
  }

  private mutating func next() -> Step {
    if let topic = topics.first(where: { !answered.contains($0) }) {
      return topic == .devices && microbits.candidates == nil ? .scan : ask(topic)
    }
    let configuration: Configuration
    switch self.configuration {
    case .success(let made): configuration = made
    case .failure(let failure): return .fail(failure)
    }
    switch trial {
    case .due: return .tryBroker(configuration)
    case .failed: return ask(.brokerTrouble)
    case .done: break
    }
    if !plan.isEmpty, !answered.contains(.confirmation) { return ask(.confirmation) }
    return .write(plan)
  }

  /// Uses the answer that an option has given, or asks.
  private mutating func ask(_ topic: SetupTopic) -> Step {
    let question = question(topic)
    let isGiven = given[topic] != nil
    guard let text = given.removeValue(forKey: topic) ?? (isUnattended ? question.preset : nil) else {
      if isUnattended { return .fail(CommandFailure(.unavailable, unattendedFailure(question))) }
      asked = question
      return .ask(question)
    }
    do throws(SetupRefusal) {
      return try apply(text, to: question)
    } catch {
      let option = isGiven ? topic.option : nil
      return .fail(CommandFailure(.usage, (option.map { "\($0): " } ?? "") + error.reason))
    }
  }

  private mutating func apply(_ text: String, to question: SetupQuestion) throws(SetupRefusal) -> Step {
    let answer = question.isSecret ? text : text.trimmed
    switch question.topic {
    case .devices:
      switch try microbits.choose(question.value(of: answer)) {
      case .devices: break
      case .every: given[.later] = "y"
      case .again: return .scan
      }
    case .name(let index): try microbits.setName(answer, of: index)
    case .area(let index): try microbits.setArea(question.optionalValue(of: answer), of: index)
    case .pairing: microbits.setPairing(try question.isYes(answer))
    case .later: try microbits.setServesLater(question.isYes(answer))
    case .host: if !answer.isEmpty { try broker.setHost(answer) }
    case .tls: broker.setEncryption(try question.isYes(answer))
    case .caFile:
      let file = question.optionalValue(of: answer)
      // A typed path is relative to the working folder, one in config.json to the folder of config.json.
      broker.setCAFile(file == question.preset ? file : try file.map(readable))
    case .port: try broker.setPort(question.value(of: answer))
    case .username:
      // A password from the command line belongs to this user.
      try broker.setUsername(
        question.optionalValue(of: answer), keepsPassword: answered.contains(.password))
    case .password:
      let typed = Array(answer.utf8)
      if !typed.isEmpty {
        broker.setPassword(typed == present.password ? present.broker.password : .typed(typed))
      }
    case .brokerTrouble: return try handleTrouble(answer)
    case .confirmation:
      guard try question.isYes(answer) else { return .end(["Nothing was changed."]) }
    case .service:
      guard try question.isYes(answer) else { return .end(closing) }
      return .useService(restart: service == .running)
    }
    answered.insert(question.topic)
    return next()
  }

  /// The absolute name of a file that the service can read.
  private func readable(_ file: String) throws(SetupRefusal) -> String {
    let file = Setup.absolute(file)
    guard isReadable(file) else {
      throw SetupRefusal(
        "The service may not read \(file). Make a copy, and name that: "
          + ServiceAccess.copyCommand(file, to: present.folder))
    }
    return file
  }

  private mutating func handleTrouble(_ answer: String) throws(SetupRefusal) -> Step {
    switch answer.lowercased() {
    case "t", "try": trial = .due
    case "c", "change":
      trial = .due
      answered.subtract([.host, .tls, .caFile, .port, .username, .password])
    case "k", "keep": trial = .done
    default: throw SetupRefusal("Please answer t, c or k.")
    }
    return next()
  }
}

extension String {
  /// Without white space at its ends.
  fileprivate var trimmed: String {
    let rest = drop(while: \.isWhitespace)
    return String(rest.reversed().drop(while: \.isWhitespace).reversed())
  }
}
