import Configuration
import Devices
import EventLoop
import GATT
import JSON
import Log

/// A recording that goes on: observes all devices, and writes what they send, at most once a second.
@LoopActor final class RecordingSession: FrontEnd {
  /// The most time from a reading to its write, so that there are few writes.
  private static let gather = Duration.seconds(1)
  /// The most bytes that wait for the disk; beyond it, readings are left out.
  private static let mostUnwritten = 4 << 20

  private(set) var recording: Recording
  private let folder: RecordingFolder
  private let file: RecordingFile
  private let limits: RecordingLimits
  /// When it ends at the latest; nil: its age is not known by the clock.
  private let latestEnd: Timestamp?
  private var columns: [RecordedColumn: Int]
  private var unwritten: [UInt8] = []
  /// What the file has of ``Recording/bytes``.
  private var size: Int
  /// The timer that ends the recording after its longest time.
  private var limit: LoopTimer?
  /// Writes what has come; cancelled at the end.
  private var writing: Task<Void, Never>?
  private let onEnd: (_ recording: Recording, _ failure: RecordingFailure?) -> Void
  /// Why the disk cannot be used.
  private var failure: RecordingFailure?

  /// - Parameters:
  ///   - isResumed: whether an earlier run has begun it. The gateway may have been off for days, which the clock of a host without
  ///     a battery perhaps tells only later. One that begins now goes on when the clock is set.
  ///   - onEnd: called once when its file is complete.
  init(
    _ open: RecordingFolder.Open, in folder: RecordingFolder, _ limits: RecordingLimits, isResumed: Bool,
    onEnd: @escaping (Recording, RecordingFailure?) -> Void
  ) {
    self.folder = folder
    self.limits = limits
    self.onEnd = onEnd
    (recording, file, size) = (open.recording, open.file, open.recording.bytes)
    columns = open.columns
    latestEnd = isResumed ? open.latestEnd(limits) : nil
    let rest = latestEnd.map { $0.milliseconds - Timestamp.now.milliseconds } ?? limits.longest
    limit = loop.timer(after: .milliseconds(max(0, min(limits.longest, rest)))) { [weak self] in
      self?.end(.time)
    }
    writing = loop.task { [self] in await write() }
  }

  // MARK: Readings

  func attach(_ device: DeviceDescription) -> (any DeviceObserver)? { RecordedDevice(device, self) }

  /// The number of a column; nil: there are too many.
  fileprivate func number(of column: RecordedColumn) -> Int? {
    if let known = columns[column] { return known }
    // A column whose line is damaged is missing among them.
    let number = (columns.values.max() ?? -1) + 1
    guard number < RecordedColumn.most, recording.end == nil else { return nil }
    columns[column] = number
    append(RecordingLine.column(column, number: number).bytes)
    return number
  }

  fileprivate func add(_ value: JSONValue, at time: Timestamp, column: Int?) {
    guard recording.end == nil else { return }
    if let latestEnd, latestEnd < time { return end(.time) }
    let offset = Int(time.milliseconds - recording.started.milliseconds)
    guard let column, unwritten.count < Self.mostUnwritten else { return recording.lost += 1 }
    append(RecordingLine.reading(offset: offset, column: column, value: value).bytes)
    recording.readings = (recording.readings ?? 0) + 1
    if recording.bytes >= limits.mostBytes { end(.size) }
  }

  private func append(_ line: [UInt8]) {
    unwritten += line
    recording.bytes += line.count
  }

  // MARK: Writing

  /// Nothing more is recorded; what was is written.
  func end(_ reason: Recording.End) {
    guard recording.end == nil else { return }
    recording.end = reason
    recording.ended = min(.now, latestEnd ?? .now)
    cancel()
  }

  private func cancel() {
    limit?.cancel()
    writing?.cancel()
  }

  private func write() async {
    while !Task.isCancelled {
      try? await loop.sleep(for: Self.gather)
      if let latestEnd, latestEnd < .now { end(.time) }
      await writeOnce()
    }
    // What has come during a write.
    await writeOnce()
    if recording.end != nil { await finish() }
  }

  private func writeOnce() async {
    let (bytes, reserve) = (unwritten, limits.reserve)
    guard !bytes.isEmpty else { return }
    unwritten = []
    let result = await EventLoop.blocking { [file, size] in
      Result { () throws(RecordingFailure) in try file.append(bytes, at: size, reserve: reserve) }
    }
    guard case .failure(let failure) = result else { return size += bytes.count }
    self.failure = failure
    let readings = (bytes + unwritten).split(separator: UInt8(ascii: "\n")).count {
      $0.first == RecordingLine.reading
    }
    recording.readings = (recording.readings ?? 0) - readings
    recording.lost += readings
    recording.bytes = size
    unwritten = []
    (recording.end, recording.ended) = (.disk, recording.ended ?? .now)
    cancel()
  }

  private func finish() async {
    do throws(RecordingFailure) {
      recording = try await EventLoop.blocking { [folder, file, recording] () throws(RecordingFailure) in
        try folder.finish(recording, file)
      }
    } catch {
      failure = failure ?? error
    }
    onEnd(recording, failure)
  }

  /// Writes what is left. A recording that has not ended goes on in the next run.
  /// - Returns: the recording as it is then.
  func written() async -> Recording {
    cancel()
    await writing?.value
    return recording
  }
}

extension RecordingFolder.Open {
  /// 2025-01-01. A clock that says less has not been set yet.
  private static let earliest: Int64 = 1_735_689_600_000

  /// When it ends at the latest; nil: if the clock was set forward since it began, as it was written after that, its age is not
  /// known, and its time begins again.
  fileprivate func latestEnd(_ limits: RecordingLimits) -> Timestamp? {
    let end = Timestamp(milliseconds: recording.started.milliseconds + limits.longest)
    return recording.started.milliseconds < Self.earliest || end + .seconds(60) < changed ? nil : end
  }
}

/// Limits of a recording; others in tests.
package struct RecordingLimits: Sendable {
  /// The most time from its start to its end, in milliseconds.
  var longest: Int64 = 3 * 3_600_000
  /// The most bytes of its file.
  var mostBytes = 64 << 20
  /// How many bytes of the disk stay free: the gateway needs some for its state.
  var reserve = 32 << 20
  /// How long a request waits for the disk.
  var patience = Duration.seconds(20)

  package init() {}
}

/// A device that is recorded.
@LoopActor private final class RecordedDevice: DeviceObserver {
  private var device: DeviceDescription
  private let session: RecordingSession

  init(_ device: DeviceDescription, _ session: RecordingSession) {
    self.device = device
    self.session = session
  }

  func reported(_ reading: Reading) {
    // Values of a program have readings of their own. What is read back is no reading.
    guard !reading.isOnlyValues, reading.sequence != nil, let property = device.property(of: reading) else {
      return
    }
    let column = RecordedColumn(
      device: device.id.description, property: property.name, unit: property.unit,
      fields: property.codec.fields, units: property.codec.units)
    session.add(property.codec.json(reading.value), at: reading.time, column: session.number(of: column))
  }

  func changed(_ change: DeviceChange, _ device: DeviceDescription) { self.device = device }

  func detach(_ reason: DetachReason) {}
}
