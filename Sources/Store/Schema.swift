/// Converts the records of one schema version to the next.
package typealias Migration = @Sendable ([String: [UInt8]]) -> [String: [UInt8]]

/// The layout of a state database: versions are counted from 0.
package struct Schema: Sendable {
  /// The version that this program reads and writes, SQLite's `user_version`.
  package let version: Int
  /// `migrations[n]` converts the records of version n to version n + 1.
  package let migrations: [Migration]

  /// - Parameter migrations: one for each version before `version`.
  package init(version: Int, migrations: [Migration]) {
    precondition(migrations.count == version, "a schema needs a migration from each older version")
    self.version = version
    self.migrations = migrations
  }

  /// Converts records of the older version `version` to this one.
  func migrated(_ records: [String: [UInt8]], from version: Int) -> [String: [UInt8]] {
    migrations[version...].reduce(records) { $1($0) }
  }
}
