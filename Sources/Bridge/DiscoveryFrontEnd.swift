import EventLoop
import GATT
import MQTT

/// A front end that uses the bridge's topics and connection: Home Assistant's discovery.
@LoopActor package protocol DiscoveryFrontEnd: AnyObject, Sendable {
  /// The gateway may publish from now on, on this connection.
  func admitted()
  func disconnected()
  /// The broker has refused a message, which was dropped.
  /// - Returns: whether ``publishRefusedAgain()`` publishes what it said.
  func refused(_ topic: TopicName, _ reason: MQTTRefusal) -> Bool
  /// Documents that were refused may be taken now.
  func publishRefusedAgain()
  /// A message on none of the bridge's topics.
  func received(_ message: MQTTReceived)
  /// A device is known from now on, or no longer.
  func attached(_ address: BluetoothAddress)
  func detached(_ address: BluetoothAddress)
  /// Something that is published of a device of this gateway has changed.
  func deviceChanged(_ publisher: DevicePublisher)
  /// A device of this run or of an earlier one was removed.
  func deviceRemoved(_ address: BluetoothAddress)
  /// Another gateway owns the device now.
  func ownedElsewhere(_ address: BluetoothAddress)
}
