import EventLoop
import Log
import Recording

/// A recording on its way to a client: each piece is made off the loop when the client has read those before.
@LoopActor final class RecordingDownload: BodySource {
  /// One piece is made at a time, however many clients there are: each takes a thread, or the loop if there can be none.
  private static let mutex = AsyncMutex()

  private let open: @Sendable () throws(RecordingFailure) -> RecordingTable
  private var table: RecordingTable?
  /// A piece that was made; the inner nil: that was all.
  private var piece: [UInt8]??
  private var (isWorking, hasEnded) = (false, false)
  /// There is a piece.
  var onReady: () -> Void = {}
  /// The file cannot be read: the client must not take what it has for all.
  var onFailure: () -> Void = {}

  /// - Parameter open: opens it; blocks.
  init(_ open: @escaping @Sendable () throws(RecordingFailure) -> RecordingTable) { self.open = open }

  func next() -> [UInt8]? {
    guard !hasEnded else { return nil }
    if let piece {
      self.piece = nil
      return piece
    }
    if !isWorking { work() }
    return []
  }

  func end() { (hasEnded, table, piece) = (true, nil, nil) }

  private func work() {
    isWorking = true
    loop.task { [self] in
      await Self.mutex.lock()
      defer { Self.mutex.unlock() }
      guard !hasEnded else { return }
      let result = await EventLoop.blocking { [open, table] in
        Result { () throws(RecordingFailure) in
          var table = if let table { table } else { try open() }
          let piece = try table.next()
          return (table, piece)
        }
      }
      isWorking = false
      guard !hasEnded else { return }
      switch result {
      case .success((let table, let piece)):
        self.table = table
        if piece == [] { return work() }
        self.piece = .some(piece)
        onReady()
      case .failure(let failure):
        Logger(component: "web").warning("a recording cannot be read: \(failure)")
        onFailure()
      }
    }
  }
}
