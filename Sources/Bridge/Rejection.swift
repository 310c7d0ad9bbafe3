/// Why a command or request is refused before anything is done.
struct Rejection: Error, Sendable, Equatable {
  /// A sentence for the sender.
  let reason: String
  let transaction: String?

  init(_ reason: String, _ transaction: String? = nil) {
    self.reason = reason
    self.transaction = transaction
  }
}
