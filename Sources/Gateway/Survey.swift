import BlueZ
import Configuration
import JSON

/// A scan that a request asked for: what was in reach while it lasted.
struct Survey {
  let number: UInt64
  private var found: [PeripheralID: Peripheral] = [:]

  init(number: UInt64) {
    self.number = number
  }

  /// Once heard, its signal is kept: bluetoothd forgets it when scanning stops.
  mutating func saw(_ peripheral: Peripheral) {
    if peripheral.isInReach { found[peripheral.id] = peripheral }
  }

  /// The strongest first.
  var peripherals: [Peripheral] { found.values.sorted { ($0.rssi ?? -128) > ($1.rssi ?? -128) } }
}

extension Peripheral {
  /// As `scan` lists it.
  ///
  /// - Parameter id: what the gateway calls it, if it is one of its devices.
  func json(knownAs id: DeviceID?) -> JSONValue {
    [
      "identifier": .string(address.description), "name": name.map(JSONValue.string),
      "rssi": rssi.map(JSONValue.integer), "connected": .bool(isConnected),
      "device": id.map { .string($0.description) },
    ]
  }
}
