import Bridge
import Configuration
import Devices
import EventLoop
import GATT
import Glibc
import JSON
import Log

/// What Prometheus gets, in the text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
@LoopActor struct Metrics {
  static let type = "text/plain; version=0.0.4; charset=utf-8"

  private enum Kind: String { case gauge, counter }

  private typealias Sample = (labels: [(String, String)], value: Double)

  let state: WebState
  let connections: Int

  /// Family by family, as each has to be in one piece.
  var body: Parts {
    let devices = state.sorted
    func family(
      _ name: String, _ kind: Kind, _ help: String, _ samples: @escaping @LoopActor (WebDevice) -> [Sample]
    ) -> @LoopActor () -> [UInt8] {
      {
        var bytes: [UInt8] = []
        let all = devices.flatMap { device in
          samples(device).map { ([("device", device.device.id.description)] + $0.labels, $0.value) }
        }
        append("microbit_gateway_\(name)", kind, help, all, to: &bytes)
        return bytes
      }
    }
    return Parts([
      {
        let info = state.host.info
        return gateway(info, isHealthy: state.host.health.isHealthy) + process(started: info.started)
      },
      family("device_info", .gauge, "A device: its name, area and Bluetooth address") { device in
        let description = device.device
        let labels = [
          ("name", description.name ?? ""), ("area", description.settings.area ?? ""),
          ("identifier", description.address.description),
        ]
        return [(labels, 1)]
      },
      family(
        "device_connected", .gauge,
        "1 if the device is online, 0 if not; absent if it is disabled, or another gateway has it"
      ) {
        let isHere = $0.device.settings.isEnabled && state.host.otherOwner(of: $0.device) == nil
        return isHere ? [([], $0.device.isOnline ? 1 : 0)] : []
      },
      family("device_rssi_dbm", .gauge, "Signal strength of the last advertisement") {
        // The engine tells of other changes only.
        state.engine.device($0.device.id)?.rssi.map { [([], Double($0))] } ?? []
      },
      family("readings_total", .counter, "Readings by property") { device in
        device.published.filter { $0.last.count > 0 }.map {
          ([("property", $0.property.name)], Double($0.last.count))
        }
      },
      family("value", .gauge, "The last value of each number") { device in
        device.numbers.map {
          ([("property", $0.property), ("field", $0.field), ("unit", $0.unit)], $0.number)
        }
      },
      family(
        "last_reading_timestamp_seconds", .gauge,
        "When the last reading arrived, of a device that sends them again and again"
      ) {
        state.engine.lastReading(of: $0.device.address).map { [([], Double($0.milliseconds) / 1000)] } ?? []
      },
      family("connects_total", .counter, "Connections to the device") { [([], Double($0.connects))] },
      family("disconnects_total", .counter, "Connections that have ended") { [([], Double($0.disconnects))] },
      family("writes_total", .counter, "Commands by what became of them") { device in
        device.writes.sorted { $0.key < $1.key }.map { ([("result", $0.key)], Double($0.value)) }
      },
    ])
  }

  // MARK: Families

  private func gateway(_ info: BridgeInfo, isHealthy: Bool) -> [UInt8] {
    let mqtt = info.counters.mqtt
    var bytes: [UInt8] = []
    func add(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
      append("microbit_gateway_\(name)", kind, help, samples, to: &bytes)
    }
    add("info", .gauge, "The gateway's version", [([("version", info.version)], 1)])
    add("healthy", .gauge, "Whether the gateway itself has no fault", [([], isHealthy ? 1 : 0)])
    add(
      "adapter_on", .gauge, "Whether the adapter can be used",
      info.adapters.map { ([("adapter", $0.name)], $0.state.isOn ? 1 : 0) })
    add(
      "mqtt_connected", .gauge, "Whether there is a connection to the broker",
      [([], info.broker.connectedSince == nil ? 0 : 1)])
    add(
      "mqtt_messages_total", .counter, "Messages to the broker",
      [("sent", mqtt.sent), ("lost", mqtt.lost), ("rejected", mqtt.rejected)].map {
        ([("result", $0)], Double($1))
      })
    add("mqtt_queued_messages", .gauge, "Messages that wait for the broker", [([], Double(mqtt.queued))])
    add("spool_messages", .gauge, "Readings in the spool", [([], Double(info.spool.messages))])
    add("spool_dropped_total", .counter, "Readings that the spool lost", [([], Double(info.spool.lost))])
    add(
      "recovery_steps_total", .counter, "Steps to mend an adapter",
      info.adapters.compactMap { adapter in
        adapter.recovery.map {
          ([("adapter", adapter.name), ("step", $0.step.rawValue)], Double($0.count))
        }
      })
    add(
      "malformed_total", .counter, "Values that could not be decoded",
      [([], Double(info.counters.devices.malformed))])
    add("http_connections", .gauge, "Clients of this server", [([], Double(connections))])
    add("http_streams", .gauge, "Clients that get events", [([], Double(state.streams.count))])
    return bytes
  }

  private func process(started: Timestamp) -> [UInt8] {
    var bytes: [UInt8] = []
    func add(_ name: String, _ kind: Kind, _ help: String, _ value: Double) {
      append("process_\(name)", kind, help, [([], value)], to: &bytes)
    }
    if let memory = ResidentMemory.kibibytes {
      add("resident_memory_bytes", .gauge, "Resident memory", Double(memory) * 1024)
    }
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    let seconds = Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    add("cpu_seconds_total", .counter, "Time on the CPU", seconds)
    if let names = FolderNames.all(in: "/proc/self/fd") {
      // `.`, `..` and the descriptor of the folder are not counted.
      add("open_fds", .gauge, "Open file descriptors", Double(names.count - 3))
    }
    add(
      "start_time_seconds", .gauge, "When the process was started",
      Double(started.milliseconds) / 1000)
    return bytes
  }

  private func append(
    _ name: String, _ kind: Kind, _ help: String, _ samples: [Sample], to bytes: inout [UInt8]
  ) {
    guard !samples.isEmpty else { return }
    bytes += "# HELP \(name) \(help).\n# TYPE \(name) \(kind.rawValue)\n".utf8
    for (labels, value) in samples {
      let list = labels.map { "\($0)=\"\(Self.escaped($1))\"" }.joined(separator: ",")
      let number = Int(exactly: value).map(String.init) ?? "\(value)"
      bytes += "\(name)\(list.isEmpty ? "" : "{\(list)}") \(number)\n".utf8
    }
  }

  /// A label's value.
  nonisolated static func escaped(_ text: String) -> String {
    Excerpt.harmless(text).unicodeScalars.map { $0 == "\\" ? "\\\\" : $0 == "\"" ? "\\\"" : String($0) }
      .joined()
  }
}

extension WebDevice {
  /// The properties that the device may have, and what they had last.
  fileprivate var published: [(property: Property, last: LastValue)] {
    let names = device.propertyNames
    return zip(device.allProperties, last).filter { names.contains($0.0.name) }.map { ($0, $1) }
  }

  /// The last numbers.
  fileprivate var numbers: [(property: String, field: String, unit: String, number: Double)] {
    published.filter { $0.property.kind == .state }.flatMap { property, last in
      let value = last.published(property)
      guard case .record(let fields) = value else {
        return value?.historyNumber.map { [(property.name, "", property.unit ?? "", $0)] } ?? []
      }
      return zip(property.codec.fields ?? [], fields).compactMap { name, value in
        value?.historyNumber.map { (property.name, name, property.unit(of: name) ?? "", $0) }
      }
    }
  }
}
