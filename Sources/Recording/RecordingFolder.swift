import Configuration
import EventLoop
import Glibc
import Log

/// The files of recordings: `NAME.part` is being written, or could not be renamed when it ended; `NAME.rec` has ended. All of it
/// blocks.
package struct RecordingFolder: Sendable {
  /// The most recordings that are kept, and the most bytes of all of them: the oldest are removed.
  static let (mostRecordings, mostBytes) = (50, 256 << 20)
  private static let (writing, ended) = (".part", ".rec")

  let path: String

  package init(path: String) { self.path = path }

  /// A recording that goes on.
  struct Open: Sendable {
    var recording: Recording
    let file: RecordingFile
    /// The numbers of the columns that its file has.
    var columns: [RecordedColumn: Int] = [:]
    /// When it was written last.
    let changed: Timestamp
  }

  /// The recordings that have ended, from the oldest, the one that an earlier run has begun, and why others cannot go on.
  func load() -> (ended: [Recording], open: Open?, failures: [RecordingFailure]) {
    var (ended, unfinished, failures) = ([Recording](), [Open](), [RecordingFailure]())
    for name in names(Self.writing) {
      let found = try? look(at: name, Self.writing)
      if let found, found.end != nil {
        if (try? markEnded(name)) == nil { ended.append(found) }
        continue
      }
      do throws(RecordingFailure) {
        unfinished.append(try resume(name))
      } catch {
        guard let found else { continue }
        ended.append(found)
        failures.append(error)
      }
    }
    unfinished.sort { $0.recording.started < $1.recording.started }
    let open = unfinished.popLast()
    for other in unfinished { _ = try? finish(other.recording, other.file) }
    ended += names(Self.ended).compactMap { try? look(at: $0, Self.ended) }
    return (ended.sorted { $0.started < $1.started }, open, failures)
  }

  private func names(_ suffix: String) -> [String] {
    (FolderNames.all(in: path) ?? []).filter { $0.hasSuffix(suffix) }.map {
      String($0.dropLast(suffix.count))
    }
  }

  /// Starts a recording; its name has a number behind it if there is one of this name.
  func create(_ name: String, at time: Timestamp, reserve: Int) throws(RecordingFailure) -> Open {
    if let folder = Folder.make(path) { throw .system("make the folder", folder) }
    var (unique, number) = (name, 1)
    while access(file(unique, Self.writing), F_OK) == 0 || access(file(unique, Self.ended), F_OK) == 0 {
      number += 1
      unique = "\(name)-\(number)"
    }
    let start = RecordingLine.start(time).bytes
    let file = try RecordingFile(file(unique, Self.writing), O_RDWR | O_CREAT | O_EXCL)
    do throws(RecordingFailure) {
      try file.append(start, at: 0, reserve: reserve)
    } catch {
      unlink(file.path)
      throw error
    }
    Folder.synchronize(path)
    let recording = Recording(name: unique, started: time, readings: 0, bytes: start.count)
    return Open(recording: recording, file: file, changed: time)
  }

  /// Goes on with a recording of an earlier run. What a power cut has left of a last line is cut off; a file without a line is
  /// removed.
  private func resume(_ name: String) throws(RecordingFailure) -> Open {
    let file = try RecordingFile(file(name, Self.writing), O_RDWR)
    let (size, changed) = file.status
    var reader = RecordingReader(file, size: size)
    var (started, readings, columns) = (Timestamp?.none, 0, [RecordedColumn: Int]())
    while let lines = try reader.next() {
      for line in lines {
        if line.first == RecordingLine.reading {
          readings += 1
          continue
        }
        switch RecordingLine(line) {
        case .start(let time): started = time
        case .column(let column, let number): columns[column] = number ?? columns.count
        case .reading, .end, nil: break
        }
      }
    }
    guard let started else {
      // A power cut at the start of the recording has left no line of it. Its name is free again.
      if reader.lineStart == 0 { unlink(file.path) }
      throw RecordingFailure("\(file.path) is no recording")
    }
    if reader.lineStart < size { try file.cut(to: reader.lineStart) }
    let recording = Recording(name: name, started: started, readings: readings, bytes: reader.lineStart)
    return Open(
      recording: recording, file: file, columns: columns, changed: Timestamp(milliseconds: changed))
  }

  /// Reads what is known of a recording that has ended: its first and its last line.
  private func look(at name: String, _ suffix: String) throws(RecordingFailure) -> Recording {
    let file = try RecordingFile(file(name, suffix), O_RDONLY)
    let (bytes, changed) = file.status
    let first = try file.read(256, at: 0).prefix { $0 != UInt8(ascii: "\n") }
    guard case .start(let started) = RecordingLine(first) else {
      throw RecordingFailure("\(file.path) is no recording")
    }
    let ended = Timestamp(milliseconds: changed)
    var recording = Recording(name: name, started: started, ended: ended, bytes: bytes)
    let lines = try file.read(256, at: max(0, bytes - 256)).split(separator: UInt8(ascii: "\n"))
    if let last = lines.last, case .end(let time, let end, let readings, let lost) = RecordingLine(last) {
      (recording.ended, recording.end, recording.readings, recording.lost) = (time, end, readings, lost)
    }
    return recording
  }

  /// Ends a recording. A full disk may have no room for the line that says why.
  func finish(
    _ recording: Recording, _ file: RecordingFile
  ) throws(RecordingFailure) -> Recording {
    var recording = recording
    if let ended = recording.ended, let end = recording.end {
      let line = RecordingLine.end(ended, end, readings: recording.readings ?? 0, lost: recording.lost).bytes
      if (try? file.append(line, at: recording.bytes, reserve: 0)) != nil { recording.bytes += line.count }
    }
    try markEnded(recording.name)
    return recording
  }

  private func markEnded(_ name: String) throws(RecordingFailure) {
    guard rename(file(name, Self.writing), file(name, Self.ended)) == 0 else {
      throw .system("rename", file(name, Self.writing))
    }
    Folder.synchronize(path)
  }

  /// - Returns: whether the recording is gone, also after a power cut.
  @discardableResult
  func remove(_ name: String) -> Bool {
    for suffix in [Self.writing, Self.ended] {
      guard unlink(file(name, suffix)) == 0 || errno == ENOENT else { return false }
    }
    Folder.synchronize(path)
    return true
  }

  /// Opens a recording for reading, also one that goes on.
  package func table(_ name: String, _ layout: RecordingTable.Layout) throws(RecordingFailure)
    -> RecordingTable
  {
    guard !name.isEmpty, !name.contains("/"), !name.utf8.contains(0) else {
      throw RecordingFailure("there is no recording \(name)")
    }
    // The recording may end in between.
    for suffix in [Self.writing, Self.ended] where access(file(name, suffix), F_OK) == 0 {
      let file = try RecordingFile(file(name, suffix), O_RDONLY)
      return RecordingTable(file, layout)
    }
    throw .system("open", file(name, Self.ended))
  }

  private func file(_ name: String, _ suffix: String) -> String { "\(path)/\(name)\(suffix)" }
}
