/// Turns the records of one schema version into those of the next.
package typealias Migration = @Sendable ([String: [UInt8]]) -> [String: [UInt8]]

/// What the keys and values of a state database mean, by versions that are counted from 0.
package struct Schema: Sendable {
  /// The version that this program reads and writes: in the file it is SQLite's `user_version`.
  package let version: Int
  /// `migrations[n]` turns the records of version n into those of version n + 1.
  package let migrations: [Migration]

  /// - Parameter migrations: one for each version before `version`.
  package init(version: Int, migrations: [Migration]) {
    precondition(migrations.count == version, "a schema needs a migration from each older version")
    self.version = version
    self.migrations = migrations
  }

  /// The records of the older version `version`, as those of this one.
  func migrated(_ records: [String: [UInt8]], from version: Int) -> [String: [UInt8]] {
    migrations[version...].reduce(records) { $1($0) }
  }
}
