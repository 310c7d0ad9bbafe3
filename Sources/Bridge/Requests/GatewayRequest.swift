import Configuration
import Devices
import EventLoop
import GATT
import JSON

/// A request to the gateway: its keys, what is done, and what is answered. It is the same over MQTT, the socket and HTTP.
protocol GatewayRequest: RequestKeys, Equatable {
  /// `device/add`, as in its topic.
  static var verb: String { get }
  /// Carries the request out. Unless it throws, it answers once: now or later.
  @LoopActor func perform(_ call: RequestCall) throws(RequestError)
}

/// In the order in which they are listed to users.
enum RequestTable {
  static let all: [any GatewayRequest.Type] = [
    ListDevices.self, ReportHealth.self, ReloadConfiguration.self, Scan.self, AddDevice.self,
    RemoveDevice.self, ReconnectDevice.self, RenameDevice.self, PairDevice.self, UnpairDevice.self,
    ChangeOptions.self, InspectDevice.self, IdentifyDevice.self, GetProperty.self, SetProperty.self,
    RemoveValue.self, ReportAdapter.self, RunSequence.self, ResetAdapter.self, SetLogLevel.self,
    PermitJoining.self,
  ]
}

/// A request that is carried out, and who waits for its answer.
@LoopActor struct RequestCall {
  let engine: DeviceManager
  unowned let host: any RequestHost
  /// Called once.
  let reply: @LoopActor (Result<JSONValue, RequestError>) -> Void

  func answer(_ data: JSONValue) { reply(.success(data)) }

  /// Answers when `body` has ended.
  func later(_ body: @escaping @LoopActor () async throws(RequestError) -> JSONValue) {
    loop.task { [reply] in
      do throws(RequestError) {
        reply(.success(try await body()))
      } catch {
        reply(.failure(error))
      }
    }
  }

  /// - Throws: if another gateway carries out the device's commands, or it is disabled.
  func checkUsable(_ id: DeviceID) throws(RequestError) {
    let device = try engine.description(of: id)
    if let owner = host.otherOwner(of: device) {
      throw RequestError("\(id) is owned by the gateway \(owner): send the request there")
    }
    try device.checkEnabled()
  }
}

// MARK: Keys

/// The keys of a request: the section's own, and `transaction`.
package protocol RequestKeys: ConfigurationSection {
  static var own: [ConfigurationKey<Self>] { get }
}

extension RequestKeys {
  /// The default: a request without keys.
  static var own: [ConfigurationKey<Self>] { [] }

  package static var keys: [ConfigurationKey<Self>] {
    own + [ConfigurationKey(ignored: "transaction", .transaction)]
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

extension ConfigurationRule<String> {
  /// Its value was read before, so that errors can be answered with it.
  fileprivate static var transaction: Self {
    ConfigurationRule(
      shape: .text(0...Sender.longestTransaction), parse: \.text, write: JSONValue.string)
  }
}

extension ConfigurationKey {
  /// The device that a request is about.
  static func id(_ place: WritableKeyPath<Section, DeviceID?> & Sendable) -> Self {
    ConfigurationKey(required: "id", place, .deviceID, hint: DeviceSelector.hint)
  }
}

/// A device by its id, or by its address; for `device/inspect` also another peripheral.
struct DeviceSelector: ConfigurationSection, Equatable {
  var id: DeviceID?
  /// Required without `id`.
  @Required var identifier: BluetoothAddress

  static let hint = "the device's id, as in its topics"
  static let keys: [ConfigurationKey<Self>] = [
    ConfigurationKey("id", \.id, .optional(.deviceID)),
    ConfigurationKey("identifier", \.$identifier, .optional(.address)),
  ]

  func problems(at path: ConfigurationPath) -> [ConfigurationError] {
    switch (id, $identifier) {
    case (nil, nil):
      [path.key("id").error("this is missing", hint: "\(Self.hint); or identifier, its Bluetooth address")]
    case (.some, .some): [path.key("identifier").error("the device is named twice", hint: "leave out id")]
    case (.some, nil), (nil, .some): []
    }
  }

  var reference: DeviceReference { id.map { .id($0) } ?? .address(identifier) }
}
