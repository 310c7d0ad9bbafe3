import Configuration
import Devices
import GATT
import JSON

/// The keys of a request: the section's own, and `transaction`.
package protocol RequestKeys: ConfigurationSection {
  static var own: [ConfigurationKey<Self>] { get }
}

extension RequestKeys {
  /// The default: a request without keys.
  package static var own: [ConfigurationKey<Self>] { [] }

  package static var keys: [ConfigurationKey<Self>] {
    // `RequestHandler.perform` has checked the transaction, so that errors can be answered with it.
    own + [ConfigurationKey(ignored: "transaction", .any)]
  }

  init(_ keys: JSONObject) throws(RequestError) {
    var errors: [ConfigurationError] = []
    guard let section = Self.read(.object(keys), nil, .root, &errors), errors.isEmpty else {
      let first = errors.prefix(5).map(\.description).joined(separator: "; ")
      throw RequestError(.invalid, errors.count > 5 ? "\(first); and \(errors.count - 5) more" : first)
    }
    self = section
  }
}

/// The value of a key that must be given: without it there is an error, and so no request.
@propertyWrapper struct Required<Value: Sendable & Equatable>: Sendable, Equatable {
  var projectedValue: Value?

  var wrappedValue: Value {
    guard let projectedValue else { preconditionFailure("a request without a key that it requires") }
    return projectedValue
  }
}

extension ConfigurationKey {
  /// A key that must be given: its place is nil only until it is read.
  init<Value>(
    required name: String, _ place: WritableKeyPath<Section, Value?> & Sendable,
    _ rule: ConfigurationRule<Value>, hint: String? = nil
  ) {
    self.init(required: name, place, .optional(rule), hint: hint)
  }

  /// The device that a request is about.
  static func id(_ place: WritableKeyPath<Section, DeviceID?> & Sendable) -> Self {
    ConfigurationKey(required: "id", place, .deviceID, hint: DeviceSelector.hint)
  }
}

/// A device by its id, or by its address; for `device/inspect` also another peripheral.
struct DeviceSelector: ConfigurationSection, Equatable {
  // One of the two is given: see `problems(at:)`.
  var id: DeviceID?
  var identifier: BluetoothAddress?

  static let hint = "the device's id, as in its topics"
  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("id", \.id, .optional(.deviceID)),
    ConfigurationKey("identifier", \.identifier, .optional(.address)),
  ]

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    switch (id, identifier) {
    case (nil, nil):
      [path.key("id").error("this is missing", hint: "\(Self.hint); or identifier, its Bluetooth address")]
    case (.some, .some): [path.key("identifier").error("the device is named twice", hint: "leave out id")]
    case (.some, nil), (nil, .some): []
    }
  }

  var reference: DeviceReference { id.map { .id($0) } ?? .address(identifier!) }
}
