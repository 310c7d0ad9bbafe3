import EventLoop

/// Decides when discovery that reports nothing is restarted, and when the adapter is reset. Pure.
struct SilenceWatch {
  /// Whether the next discovery is to report the signal strength of each advertisement, by a filter for strengths. Without
  /// it bluetoothd reports only changes of 8 dB: 5.82 for some adapters, 5.88 for all. With it the kernel drops
  /// advertisements without a strength: so after silence the other way is tried.
  private(set) var wantsStrengths = true
  /// How long discovery may report no advertisement: longer after each restart that did not help.
  private(set) var longestSilence: Duration
  private var backOff: BackOff
  /// How often discovery was started again in succession, and still reported nothing, since the last reset for silence.
  private var silences = 0
  /// How often the adapter was reset for silence, and nothing was received since.
  private var resets = 0

  /// - Parameter backOff: how long discovery may report no advertisement.
  init(_ backOff: BackOff) {
    self.backOff = backOff
    longestSilence = self.backOff.next()
  }

  /// Discovery has reported advertisements since the last check.
  mutating func heard() {
    (silences, resets) = (0, 0)
    backOff.reset()
    longestSilence = backOff.next()
  }

  /// Discovery has reported nothing for ``longestSilence``, and is started again.
  /// - Parameter mayReset: whether the adapter may be reset; if not, a reset that is due remains so.
  /// - Returns: whether the adapter is to be reset, which may have stopped receiving: after 12 minutes, then each hour.
  mutating func heardNothing(mayReset: Bool) -> Bool {
    wantsStrengths.toggle()
    longestSilence = backOff.next()
    silences += 1
    guard mayReset, silences >= (resets == 0 ? 5 : 12) else { return false }
    (silences, resets) = (0, resets + 1)
    return true
  }

  /// Whether the adapter was reset for that before, and nothing was received since.
  var wasResetInVain: Bool { resets > 1 }
}
