import EventLoop

/// Tells a press from a state that a program sends again and again: a joystick sends `a:0` ten times a second. Pure.
struct ButtonStates {
  /// A state that is the same after this time is news again: packets get lost.
  private static let limit = Duration.milliseconds(1500)

  private var last: [Int: (state: UInt8, time: Moment)] = [:]
  /// The buttons whose program sends 0 at the end of a press. Another one sends each press once.
  private var haveEnds: Set<Int> = []

  /// - Returns: whether the button's state was the same a moment ago.
  mutating func repeats(_ state: UInt8, of button: Int, at now: Moment) -> Bool {
    if state == UInt8(ascii: "0") { haveEnds.insert(button) }
    guard let before = last.updateValue((state, now), forKey: button), before.state == state,
      haveEnds.contains(button)
    else { return false }
    return now < before.time + Self.limit
  }
}
