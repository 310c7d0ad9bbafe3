import JSON

/// Why a profile is refused.
public struct ProfileError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The way to what is wrong, in the profile's JSON: from the profile, or from the property, field or codec that has thrown
  /// the error.
  package let path: [JSONStep]
  /// A sentence for the author of the profile.
  public let description: String
  /// The name of a property that there is not.
  public let unknownProperty: String?

  package init(_ path: [JSONStep], _ description: String, unknownProperty: String? = nil) {
    (self.path, self.description, self.unknownProperty) = (path, description, unknownProperty)
  }

  /// The error of a part, as one of the whole, in which the part is at `place`.
  package func inside(_ place: [JSONStep]) -> ProfileError {
    ProfileError(place + path, description, unknownProperty: unknownProperty)
  }
}

/// Refuses the profile unless the condition holds.
func require(
  _ condition: Bool, _ path: [JSONStep], _ description: @autoclosure () -> String
) throws(ProfileError) {
  if !condition { throw ProfileError(path, description()) }
}

// MARK: What several checks find

extension ProfileError {
  /// An error in the property of this name.
  package static func property(_ name: String, _ error: ProfileError) -> Self {
    error.path == ["name"]
      ? Self(["properties", .name(name)], error.description) : error.inside(["properties", .key(name)])
  }
  package static func unknownProperty(_ path: [JSONStep], _ name: String) -> Self {
    Self(path, "there is no property \(name)", unknownProperty: name)
  }
  package static func needs(access: String, key: String) -> Self {
    Self([.key(key)], "\(key) needs \"\(access)\" in access")
  }
  static func homeAssistant(needs: String) -> Self { Self(["home_assistant"], "needs \(needs)") }
  /// A `repeat` of elements without a fixed size: text, bytes, a field with `repeat`, another list.
  package static let notRepeatable = Self(
    ["repeat"], "only values of a fixed size can be repeated, and only once")
  package static func notAnInteger(key: String, type: Codec.ScalarType) -> Self {
    Self([.key(key)], "\(key) needs an integer type, not \(type.rawValue)")
  }
  /// The type or its bits cannot hold this number, which `key` gives.
  package static func number(
    _ number: Int, most: ClosedRange<Int>? = nil, type: Codec.ScalarType, in key: String = "values"
  ) -> Self {
    let bits = most.flatMap {
      $0 == type.integers ? nil : $0.upperBound.bitWidth - $0.upperBound.leadingZeroBitCount
    }
    return Self([.key(key)], "\(number) does not fit into \(bits.map { "\($0) bits" } ?? type.rawValue)")
  }
}
