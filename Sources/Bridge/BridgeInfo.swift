import Devices
import GATT
import JSON

/// The payload of `{base}/bridge/{gateway}/info`.
struct BridgeInfo: Sendable {
  /// A Bluetooth adapter of the host.
  struct Adapter: Sendable, Equatable {
    /// As BlueZ names it: `hci0`.
    let name: String
    /// `on`, `off`, `blocked`, `in_use`, `absent`, `unauthorized` or `unsupported`.
    let state: String
    /// Nil while it is absent.
    var address: BluetoothAddress?
  }

  /// The connection to the broker.
  struct Broker: Sendable, Equatable {
    let host: String
    let port: Int
    /// `5` or `3.1.1`.
    let protocolVersion: String
    /// Nil while there is no connection.
    var connectedSince: Timestamp?
    /// Connections so far in this run.
    var connects: UInt64 = 0
  }

  /// How many devices there are.
  struct Devices: Sendable, Equatable {
    var known = 0
    /// With a link, and readings.
    var online = 0
    /// The command that pairs with a device that wants it.
    var pairing: String?
  }

  let version: String
  let started: Timestamp
  let run: RunID
  var area: String?
  var adapters: [Adapter] = []
  var broker: Broker
  var devices = Devices()
  /// The events of this run, in order.
  var counters: [(name: String, count: UInt64)] = []

  /// The run that published a payload, and its start.
  static func origin(in payload: [UInt8]) -> (run: String, started: String)? {
    guard case .object(let object) = try? JSONParser.parse(payload), case .string(let run) = object["run"],
      case .string(let started) = object["started"]
    else { return nil }
    return (run, started)
  }

  var payload: [UInt8] {
    let json: JSONValue = [
      "version": .string(version),
      "started": .string(started.description),
      "run": .string(run.description),
      "area": area.map(JSONValue.string),
      "adapters": .array(adapters.map(\.json)),
      "broker": broker.json,
      "devices": [
        "known": .integer(devices.known), "online": .integer(devices.online),
        "pairing": devices.pairing.map(JSONValue.string),
      ],
      "counters": .object(
        JSONObject(
          counters.map { JSONObject.Member(name: $0.name, value: .integer(Int(clamping: $0.count))) })),
    ]
    return json.bytes
  }
}

extension BridgeInfo.Adapter {
  var json: JSONValue {
    [
      "name": .string(name), "state": .string(state),
      "address": address.map { .string($0.description) },
    ]
  }
}

extension BridgeInfo.Broker {
  fileprivate var json: JSONValue {
    [
      "host": .string(host), "port": .integer(port), "protocol": .string(protocolVersion),
      "connected": .bool(connectedSince != nil),
      "connected_since": connectedSince.map { .string($0.description) },
      "connects": .integer(Int(clamping: connects)),
    ]
  }
}
