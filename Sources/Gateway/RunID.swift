/// Tells the readings of one run of the gateway from those of the next, whose `sequence` starts again.
struct RunID: Sendable, Equatable, CustomStringConvertible {
  /// Four characters of `[a-z0-9]`.
  let description: String

  init(using generator: inout some RandomNumberGenerator) {
    let characters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
    description = String(
      (0..<4).map { _ in characters[Int.random(in: characters.indices, using: &generator)] })
  }

  init() {
    var generator = SystemRandomNumberGenerator()
    self.init(using: &generator)
  }
}
