import Configuration
import Devices
import EventLoop
import JSON

/// Reads config.json again; the reply gets the keys that need a restart.
package typealias ReloadHandler =
  @LoopActor (
    _ reply: @escaping @LoopActor (Result<[String], ConfigurationFailure>) -> Void
  ) -> Void

/// What requests need from the gateway in addition to the engine.
@LoopActor package protocol RequestHost: AnyObject, Sendable {
  /// An entry of the list of devices.
  func listing(of device: DeviceDescription) -> JSONValue
  /// The gateway that carries out the commands for a device; nil: this one.
  func otherOwner(of device: DeviceDescription) -> GatewayID?
  /// The id under which another gateway publishes a device; nil: that of this one, or none does.
  func idElsewhere(of id: DeviceID) -> DeviceID?
  /// The response to `health`.
  var health: JSONValue { get }
  var reload: ReloadHandler { get }
}

/// The response to a request, for any transport.
package struct RequestResponse: Sendable {
  package let result: Result<JSONValue, RequestError>
  /// The sender's.
  package let transaction: String?

  package init(result: Result<JSONValue, RequestError>, transaction: String?) {
    self.result = result
    self.transaction = transaction
  }

  /// `{"status":"ok","data":…}` or `{"status":"error","code":…,"error":…}`, with the transaction.
  package var json: JSONValue {
    let transaction = transaction.map(JSONValue.string)
    switch result {
    case .success(let data): return ["status": .string("ok"), "data": data, "transaction": transaction]
    case .failure(let error):
      return [
        "status": .string("error"), "code": .string(error.code.rawValue), "error": .string(error.reason),
        "data": error.data, "transaction": transaction,
      ]
    }
  }
}
