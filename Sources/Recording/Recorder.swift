import Configuration
import Devices
import EventLoop
import JSON
import Log

/// Records the readings of all devices from a request to start until one to stop, also over a restart of the gateway.
/// While nothing is recorded, it observes no device.
@LoopActor package final class Recorder {
  private let log = Logger(component: "record")
  private let engine: DeviceManager
  private let folder: RecordingFolder?
  private let limits: RecordingLimits
  private var session: RecordingSession?
  /// The recordings that have ended, from the oldest.
  private var ended: [Recording] = []
  /// Reads what earlier runs have left; another task in tests.
  var loading: Task<Void, Never>?
  /// A request to start whose file is being made; cancelled once it is answered.
  private(set) var starting: Task<Result<Recording, RequestError>, Never>?

  /// - Parameter folder: where the files are; nil: there is no place for them.
  package init(_ engine: DeviceManager, folder: String?, limits: RecordingLimits = RecordingLimits()) {
    self.engine = engine
    self.folder = folder.map { RecordingFolder(path: $0) }
    self.limits = limits
  }

  /// The recording that goes on.
  package var current: Recording? { session?.recording }

  /// The recordings that are kept, from the newest.
  package var recordings: [Recording] { [current].compactMap { $0 } + ended.reversed() }

  /// Goes on with the recording of an earlier run.
  package func start() {
    guard let folder else { return }
    loading = loop.task { [self] in
      let (found, open, failures) = await EventLoop.blocking { folder.load() }
      ended = found
      for failure in failures {
        log.error("the recording of an earlier run cannot go on: \(failure)")
      }
      guard let open else { return }
      log.notice("the recording goes on", ["name": open.recording.name])
      begin(open, folder, isResumed: true)
    }
  }

  /// Writes what is left, for at most `limit`: the next run goes on.
  package func stop(within limit: Duration) async {
    guard let session else { return }
    engine.remove(session)
    self.session = nil
    _ = await loop.result(within: limit, of: session.written)
  }

  // MARK: Requests

  /// Starts a recording.
  /// - Parameter name: of its file; nil: the time.
  package func record(_ name: String?) async throws(RequestError) -> Recording {
    guard let folder else { throw RequestError("there is no state folder for recordings") }
    let name = name.map { TopicWord.word($0) } ?? Timestamp.now.localMinute
    guard !name.isEmpty else { throw RequestError(.invalid, "name must have a letter or a digit") }
    if let starting { throw starting.isCancelled ? Self.noAnswer : isRecording }
    let task = loop.task { [self] in await create(name, folder) }
    starting = task
    defer { task.cancel() }
    return try await answer { () throws(RequestError) -> Recording in try await task.value.get() }
  }

  private func create(_ name: String, _ folder: RecordingFolder) async -> Result<Recording, RequestError> {
    defer { starting = nil }
    await loading?.value
    guard session == nil else { return .failure(isRecording) }
    let reserve = limits.reserve
    let open: RecordingFolder.Open
    do throws(RecordingFailure) {
      open = try await EventLoop.blocking { () throws(RecordingFailure) in
        try folder.create(name, at: .now, reserve: reserve)
      }
    } catch {
      return .failure(RequestError(error.description))
    }
    // The request has failed meanwhile, as the disk did not answer.
    guard !Task.isCancelled else {
      _ = await EventLoop.blocking { folder.remove(open.recording.name) }
      return .failure(Self.noAnswer)
    }
    log.notice("recording", ["name": open.recording.name])
    begin(open, folder, isResumed: false)
    // In turns, each device would come only after minutes.
    engine.beginRound()
    return .success(open.recording)
  }

  private var isRecording: RequestError {
    RequestError(.failed, "\(current?.name ?? "a recording") is being recorded already: stop it first")
  }

  private static let noAnswer = RequestError("the disk does not answer")

  /// Runs `body`, which asks the disk, when the recordings of earlier runs are known. It does not begin after the request has
  /// failed; when it takes too long itself, it goes on.
  private func answer<T: Sendable>(
    _ body: @escaping @LoopActor () async throws(RequestError) -> T
  ) async throws(RequestError) -> T {
    let end = Moment.now + limits.patience
    let result = await loop.result(within: limits.patience) { [self] () -> Result<T, RequestError> in
      await loading?.value
      guard .now < end else { return .failure(Self.noAnswer) }
      do throws(RequestError) { return .success(try await body()) } catch { return .failure(error) }
    }
    return try (result ?? .failure(Self.noAnswer)).get()
  }

  private func begin(_ open: RecordingFolder.Open, _ folder: RecordingFolder, isResumed: Bool) {
    let session = RecordingSession(open, in: folder, limits, isResumed: isResumed) { [weak self] in
      self?.hasEnded($0, $1, folder)
    }
    self.session = session
    engine.add(session)
  }

  /// Ends the recording.
  package func finish() async throws(RequestError) -> Recording {
    try await answer { [self] () throws(RequestError) -> Recording in
      _ = await starting?.value
      guard let session else { throw RequestError(.failed, "nothing is being recorded") }
      session.end(.stop)
      return await session.written()
    }
  }

  /// The recordings, from the newest, when those of earlier runs are known.
  package func list() async throws(RequestError) -> [Recording] {
    try await answer { [self] () throws(RequestError) -> [Recording] in recordings }
  }

  /// Deletes a recording that has ended.
  /// - Parameter text: its name, or what was given as its name.
  package func delete(_ text: String) async throws(RequestError) {
    try await answer { [self] () throws(RequestError) in
      let name = Recording.named(text, among: recordings.map(\.name)) ?? text
      guard name != current?.name else {
        throw RequestError(.failed, "\(name) is being recorded: stop it first")
      }
      guard let folder, ended.contains(where: { $0.name == name }) else {
        throw RequestError(.notFound, "there is no recording \(Excerpt(name))")
      }
      guard await EventLoop.blocking({ folder.remove(name) }) else {
        throw RequestError(.failed, "\(name) cannot be deleted: is the disk read-only?")
      }
      ended.removeAll { $0.name == name }
      log.notice("deleted", ["name": name])
    }
  }

  /// A recording as a table; nil: there is none of this name. Opening it blocks.
  package func table(
    _ name: String, _ layout: RecordingTable.Layout
  ) -> (@Sendable () throws(RecordingFailure) -> RecordingTable)? {
    guard let folder, recordings.contains(where: { $0.name == name }) else { return nil }
    return { () throws(RecordingFailure) in try folder.table(name, layout) }
  }

  private func hasEnded(_ recording: Recording, _ failure: RecordingFailure?, _ folder: RecordingFolder) {
    if let session { engine.remove(session) }
    session = nil
    ended.append(recording)
    if let failure {
      log.error("the recording has ended: \(failure)", ["name": recording.name, "lost": recording.lost])
    } else {
      log.notice("the recording has ended", ["name": recording.name, "readings": recording.readings ?? 0])
    }
    removeOldest(folder)
  }

  private func removeOldest(_ folder: RecordingFolder) {
    var bytes = ended.reduce(0) { $0 + $1.bytes }
    while ended.count > RecordingFolder.mostRecordings || bytes > RecordingFolder.mostBytes, ended.count > 1 {
      let oldest = ended.removeFirst()
      bytes -= oldest.bytes
      log.notice("the oldest recording was removed, to have room", ["name": oldest.name])
      loop.task { await EventLoop.blocking { folder.remove(oldest.name) } }
    }
  }
}
