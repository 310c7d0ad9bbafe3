/// Identifies a run of the gateway: `sequence` restarts with each.
package struct RunID: Sendable, Equatable, CustomStringConvertible {
  /// Four characters of `[a-z0-9]`.
  package let description: String

  package init() {
    let characters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
    description = String((0..<4).map { _ in characters[Int.random(in: characters.indices)] })
  }
}
