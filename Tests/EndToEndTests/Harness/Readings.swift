import FoundationEssentials
import TestSupport

/// A message on `…/readings`.
struct Reading: Sendable, Equatable {
  let sequence: Int
  let value: Int
  let time: Date
  let run: String
  let isReplayed: Bool
  let message: Observer.Message

  init(_ message: Observer.Message) throws {
    let json = try message.json()
    guard let sequence = json["sequence"]?.int, let value = json["value"]?.int, let run = json["run"]?.string,
      let time = json["time"]?.string
    else { throw Failure("no reading: \(message.text)") }
    self.sequence = sequence
    self.value = value
    self.time = try Date(time, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    self.run = run
    isReplayed = json["replayed"]?.bool ?? false
    self.message = message
  }

  static func == (a: Reading, b: Reading) -> Bool { a.message.number == b.message.number }
}

extension Fixture {
  /// The readings of a device so far.
  func readings(_ id: String, after mark: Int = 0) throws -> [Reading] {
    try observer.messages(on: "microbit/\(id)/readings", after: mark).map(Reading.init)
  }

  /// Waits for a reading that satisfies `condition`.
  @discardableResult
  func reading(
    _ id: String, after mark: Int = 0, where condition: @escaping @Sendable (Reading) -> Bool
  ) async throws -> Reading {
    try Reading(
      try await message("\(id)/readings", after: mark) { (try? Reading($0)).map(condition) ?? false })
  }

  /// Waits for the reading with this sequence number; returns all up to it.
  func readings(_ id: String, upTo sequence: Int) async throws -> [Reading] {
    let last = try await reading(id) { $0.sequence == sequence }
    return try readings(id).filter { $0.message.number <= last.message.number }
  }

  /// Waits for `count` more readings.
  func moreReadings(_ id: String, _ count: Int) async throws {
    let last = try observer.messages(on: "microbit/\(id)/readings").last
    let now = try last.map(Reading.init)?.sequence ?? 0
    try await reading(id, after: last?.number ?? 0) { $0.sequence >= now + count }
  }

  /// Every device with a message on one of its topics.
  var deviceIDs: Set<String> {
    get throws {
      let topics = try observer.messages.map {
        $0.topic.split(separator: "/", omittingEmptySubsequences: false)
      }
      return Set(
        topics.filter { $0.first == "microbit" && $0.count > 1 && $0[1] != "bridge" }.map { String($0[1]) })
    }
  }
}
