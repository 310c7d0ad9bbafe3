import BlueZ
import Devices
import GATT
import JSON
import Log
import MQTT
import Radio

/// The payload of `{base}/bridge/{gateway}/info`.
package struct BridgeInfo: Sendable {
  /// The connection to the broker.
  package struct Broker: Sendable, Equatable {
    /// The address that is used, or was tried last.
    var address: MQTTBroker
    /// `5` or `3.1.1`.
    let protocolVersion: String
    /// When the connection was made; nil: there is none.
    package var connectedSince: Timestamp?
    /// Connections so far in this run.
    var connects: UInt64 = 0
  }

  package let version: String
  package let started: Timestamp
  let run: RunID
  package var area: String?
  package var adapters: [AdapterStatus] = []
  package var broker: Broker
  /// How many devices there are.
  var known = 0
  var online = 0
  /// Which micro:bits may join, and until when; nil: none.
  var permitJoin: PermitJoin?
  /// The command that pairs with a device that wants it.
  var pairing: String?
  package var counters = Counters()
  package let spool: SpoolStatus
  var fleet: FleetStatus?
  /// The wired micro:bits that hear others by radio.
  var receivers: [RadioReceivers.Status] = []
  /// The senders that are heard, and are no devices.
  var strangers: [BluetoothAddress] = []

  /// The events of this run.
  package struct Counters: Sendable {
    package var devices = DeviceCounters()
    package var commands: UInt64 = 0
    package var mqtt = MQTTStatistics()

    package init() {}

    /// The counters with their names, in the order of `info`.
    package var list: [(name: String, count: UInt64)] {
      [
        ("readings", devices.readings), ("malformed", devices.malformed), ("commands", commands),
        ("over_limit", devices.overLimit), ("sent", UInt64(clamping: mqtt.sent)),
        ("queued", UInt64(clamping: mqtt.queued)), ("lost", UInt64(clamping: mqtt.lost)),
        ("rejected_by_broker", UInt64(clamping: mqtt.rejected)),
      ]
    }
  }

  /// Without what changes with each message.
  package var withoutCounters: BridgeInfo {
    var info = self
    info.counters = Counters()
    for index in receivers.indices {
      (info.receivers[index].packets, info.receivers[index].malformed) = (0, 0)
      info.receivers[index].last = nil
    }
    return info
  }

  /// The run that published a payload, and its start.
  static func origin(in payload: [UInt8]) -> (run: String, started: Timestamp)? {
    guard payload.count <= TopicMap.longestPayload, let json = try? JSONParser.parse(payload),
      let run = json["run"]?.text, run.utf8.count <= 64,
      let started = json["started"]?.text.flatMap({ Timestamp($0) })
    else { return nil }
    return (run, started)
  }

  package var json: JSONValue {
    [
      "version": .string(version),
      "started": .string(started.description),
      "run": .string(run.description),
      "area": area.map(JSONValue.string),
      "adapters": .array(adapters.map(\.json)),
      "broker": broker.json,
      "devices": [
        "known": .integer(known), "online": .integer(online), "pairing": pairing.map(JSONValue.string),
      ],
      "permit_join": .bool(permitJoin != nil),
      "permit_join_end": permitJoin.map { .string($0.end.current().description) },
      "permit_join_device": permitJoin?.device.map { .string($0.description) },
      "counters": .object(of: counters.list.map { ($0.name, .integer(Int(clamping: $0.count))) }),
      "spool": [
        "messages": .integer(spool.messages), "bytes": .integer(Int(spool.bytes)),
        "oldest": spool.oldest.map { .string($0.description) }, "lost": .integer(Int(clamping: spool.lost)),
      ],
      "fleet": fleet?.json,
      "radio": receivers.isEmpty ? nil : .array(receivers.map(\.json)),
      "radio_unknown": strangers.isEmpty
        ? nil
        : .array(
          strangers.map {
            [
              "identifier": .string($0.description),
              "name": $0.radioSender?.name.map { .string($0.description) },
            ]
          }),
    ]
  }
}

/// What became of the last message for the whole fleet.
package struct FleetStatus: Sendable, Equatable {
  /// The version of the message; nil: it could not be read.
  package let version: Int?
  /// Why the message was rejected; nil: it is applied.
  package let reason: String?

  package init(version: Int?, reason: String? = nil) { (self.version, self.reason) = (version, reason) }

  fileprivate var json: JSONValue {
    [
      "version": version.map(JSONValue.integer), "status": reason == nil ? "applied" : "rejected",
      "reason": reason.map(JSONValue.string),
    ]
  }
}

extension RadioReceivers.Status {
  fileprivate var json: JSONValue {
    [
      "port": .string(port), "board": board.map(JSONValue.string),
      "packets": .integer(Int(clamping: packets)), "malformed": .integer(Int(clamping: malformed)),
      "last": last.map { .string($0.description) }, "sends": sends.map(JSONValue.bool),
      "reason": obstacle.map { .string($0.description) },
    ]
  }
}

extension AdapterStatus {
  package var json: JSONValue { (["name": .string(name)] as JSONValue).merging(stateJSON) }

  /// `state` is `on`, `off`, `blocked`, `in_use`, `absent`, `unauthorized` or `unsupported`.
  var stateJSON: JSONValue {
    [
      "state": .string(state.word), "address": state.address.map(JSONValue.string),
      "recovery": recovery.map {
        [
          "step": .string($0.step.rawValue), "reason": .string($0.reason),
          "since": .string($0.since.description),
          "count": .integer($0.count),
        ]
      },
      "monitors": isMonitoring ? .bool(true) : nil,
    ]
  }
}

extension CentralState {
  /// The adapter's state in one word.
  package var word: String {
    switch self {
    case .noBus, .noBluetoothd, .noAnswer, .adapterAbsent: "absent"
    case .adapterInUse: "in_use"
    case .unauthorized: "unauthorized"
    case .adapterUnsupported: "unsupported"
    case .adapterOff: "off"
    case .adapterBlocked: "blocked"
    case .on: "on"
    }
  }

  /// The address of the adapter; nil unless it is on.
  fileprivate var address: String? {
    if case .on(_, let address) = self { address } else { nil }
  }
}

extension BridgeInfo.Broker {
  fileprivate var json: JSONValue {
    [
      "host": .string(address.host), "port": .integer(Int(address.port)),
      "protocol": .string(protocolVersion),
      "connected": .bool(connectedSince != nil),
      "connected_since": connectedSince.map { .string($0.description) },
      "connects": .integer(Int(clamping: connects)),
    ]
  }
}
