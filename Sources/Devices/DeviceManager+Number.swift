import EventLoop

/// Numbering the micro:bits of a class: whoever presses a button gets the next number.
extension DeviceManager {
  /// The maximum time in which micro:bits are numbered, in seconds.
  package nonisolated static let longestNumbering = 600

  /// Connected micro:bits show that they wait for a press of button A, and keep their links until they have got a name, which a
  /// front end gives them. Then they give up their links to those that have none yet.
  ///
  /// - Parameter seconds: from now on; 0: no longer.
  package func number(seconds: Int) {
    numberTimer?.cancel()
    numberTimer =
      seconds == 0 ? nil : loop.timer(after: .seconds(seconds)) { [weak self] in self?.number(seconds: 0) }
    context.links.setNumbering(seconds > 0)
  }
}
