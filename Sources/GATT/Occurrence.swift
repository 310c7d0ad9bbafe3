extension Collection where Element: Equatable {
  /// Whether `part` occurs in it.
  ///
  /// Swift's own `contains(_:)` of a collection is in the library of regular expressions, which would be 1 MB more in
  /// each program.
  package func hasOccurrence(of part: some Collection<Element>) -> Bool {
    part.isEmpty || indices.contains { self[$0...].starts(with: part) }
  }
}
