/// What became of opening a state database. In each case the gateway runs.
package enum Opening: Sendable, Equatable {
  /// It is there, as it was left, or new.
  case opened
  /// It was of the older schema version `version`, and is of the present one now; what it was is at `copy`.
  case migrated(from: Int, copy: String)
  /// What was there could not be understood, for `reason`; it was renamed to `path`, and a new one begun.
  case setAside(path: String, reason: String)
  /// A newer version of the program has written it, as `reason` says: it was left as it is, and is not read. What is put
  /// into the store lasts as long as the process.
  case newer(reason: String)
  /// What is put into the store lasts as long as the process, for `reason`. The records were read if that was possible.
  case inMemoryOnly(reason: String)
}

/// What happens to the writing of a store.
package enum StoreEvent: Sendable, Equatable {
  /// What was put could not be written, for `reason`; it is kept and tried again. Told once, until it has recovered.
  case failing(reason: String)
  /// All that was kept is written.
  case recovered
}
