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
