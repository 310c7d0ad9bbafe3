import Configuration
import Devices
import GATT
import JSON
import MQTT

/// Which of several gateways tells an event that they have heard: the one whose claim comes first from the broker, which
/// sends the claims to all in the same order.
extension BridgeContext {
  func claim(_ event: HeardEvents.Event, of address: BluetoothAddress) {
    let claim: JSONValue = [
      "gateway": .string(gateway.description), "identifier": .string(address.description),
    ]
    mqtt.publish(
      MQTTMessage(topic: topics.claims, payload: claim.merging(event.json).bytes, undelivered: .dropped),
      isUrgent: true)
  }

  func received(claim payload: [UInt8]) {
    guard let json = try? JSONParser.parse(payload), let event = HeardEvents.Event(json),
      let address = json["identifier"]?.text.flatMap({ BluetoothAddress($0) }),
      let claimant = json["gateway"]?.text.flatMap({ GatewayID($0) })
    else { return }
    engine.claimed(event, of: address, byThis: claimant == gateway)
  }
}
