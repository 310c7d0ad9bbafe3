import GATT

/// The name of a property as another gateway or an earlier run gives it: one of a profile, or `values/` and a key.
/// Topics are made of it, so it is checked once, here.
package struct PropertyName: Hashable, Sendable, CustomStringConvertible {
  package let description: String

  /// Checks a name; nil if `text` is not one.
  package init?(_ text: String) {
    guard isPropertyName(text) || NamedValue.key(of: text) != nil else { return nil }
    description = text
  }
}

extension Set<PropertyName> {
  /// The maximum number of names that others give for one device: a micro:bit has 25 properties, and its program 32 values.
  package static let most = 64

  /// The names among `texts`, at most `most`.
  package init(names texts: some Sequence<String>, most: Int = .max) {
    self.init()
    for text in texts where count < most { if let name = PropertyName(text) { insert(name) } }
  }

  /// Adds names that others gave, as long as there is room.
  package mutating func add(_ names: Set<PropertyName>) {
    for name in names where count < Self.most { insert(name) }
  }
}
