import EventLoop

/// Passes on the frames of a property whose values arrive in several notifications (``Property/frame``).
@LoopActor final class FrameReceiver {
  private let delimiter: String
  private var assembler: FrameAssembler
  /// Ends an incomplete frame when no more of it has arrived in time.
  private var timer = DeadlineTimer()
  private let arrived: (FrameAssembler.Frame) -> Void

  /// - Parameter arrived: called with each frame.
  init(delimiter: String, _ arrived: @escaping (FrameAssembler.Frame) -> Void) {
    self.delimiter = delimiter
    assembler = FrameAssembler(delimiter: delimiter)
    self.arrived = arrived
  }

  func append(_ notification: [UInt8]) { passOn(assembler.append(notification, at: .now)) }

  private func passOn(_ frames: [FrameAssembler.Frame]) {
    for frame in frames { arrived(frame) }
    timer.set(assembler.deadline) { [weak self] in
      guard let self else { return }
      passOn(assembler.end(at: .now))
    }
  }

  /// No notification follows; those of the next link begin a new frame.
  func linkDown() {
    passOn(assembler.endAll())
    assembler = FrameAssembler(delimiter: delimiter)
  }
}
