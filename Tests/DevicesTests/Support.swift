import Configuration
import GATT
import JSON

@testable import Devices

// Whole numbers as values, so that tests can write them as they are.

extension Value: ExpressibleByIntegerLiteral {
  /// This whole number.
  public init(integerLiteral number: Int) { self = .integer(number) }
}

extension EncodedValue: ExpressibleByIntegerLiteral {
  /// Different numbers have different bytes.
  init(_ number: Int) {
    self.init(.integer(number), withUnsafeBytes(of: number.littleEndian) { Array($0) })
  }

  /// This whole number.
  public init(integerLiteral number: Int) { self.init(number) }
}

extension JSONValue: ExpressibleByIntegerLiteral {
  /// This whole number.
  public init(integerLiteral number: Int) { self = .integer(number) }
}

extension DeviceOptionsPatch: ExpressibleByDictionaryLiteral {
  /// The options as in the request `device/options`, which have to be valid.
  package init(dictionaryLiteral members: (String, JSONValue)...) {
    let object = JSONObject(members.map { JSONObject.Member(name: $0, value: $1) })
    var errors: [ConfigurationError] = []
    let patch = ConfigurationRule<Self>.section.read(.object(object), nil, .root, &errors)
    guard let patch, errors.isEmpty else { preconditionFailure("\(errors)") }
    self = patch
  }
}

extension ValueKey: ExpressibleByStringLiteral {
  /// This key.
  public init(stringLiteral text: String) { self.init(text)! }
}

extension DeviceDescription {
  /// The desired values by property, as they are published.
  var desired: [String: Value] {
    let known = profile.properties.compactMap { property in
      desired(property).shown.map { (property.name, $0) }
    }
    return Dictionary(uniqueKeysWithValues: known)
  }

  /// The properties in ``desired`` whose value the configuration sets.
  var configured: Set<String> {
    Set(profile.properties.filter { desired($0).isConfigured }.map(\.name))
  }
}
