import EventLoop

extension EventLoop {
  /// A loop on a new thread.
  public static func onNewThread() -> EventLoop {
    let loop = EventLoop()
    detach { loop.run() }
    return loop
  }
}
