/// The version of this program (Semantic Versioning).
package enum Version {
  package static let current = "0.1.0"
}
