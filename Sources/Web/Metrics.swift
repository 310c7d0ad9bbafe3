import Configuration
import Devices
import EventLoop
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
    let (info, health) = (state.host.info, state.host.health)
    return Parts([
      { gateway(info, health) }, { process() },
      {
        family("device_info", .gauge, "A device: its name, area and Bluetooth address", devices) { device in
          let description = device.device
          return [
            (
              [
                ("name", description.name ?? ""), ("area", description.area ?? ""),
                ("identifier", description.address.description),
              ], 1
            )
          ]
        }
      },
      {
        family("device_connected", .gauge, "Whether the device is online", devices) {
          [([], $0.device.isOnline ? 1 : 0)]
        }
      },
      {
        family("device_rssi_dbm", .gauge, "Signal strength of the last advertisement", devices) {
          $0.device.rssi.map { [([], Double($0))] } ?? []
        }
      },
      {
        family("readings_total", .counter, "Readings by property", devices) { device in
          device.known.filter { $0.state.count > 0 }.map { ([("property", $0.name)], Double($0.state.count)) }
        }
      },
      {
        family("value", .gauge, "The last number", devices) { device in
          device.numbers.map {
            ([("property", $0.property), ("field", $0.field), ("unit", $0.unit)], $0.number)
          }
        }
      },
      {
        family("last_reading_timestamp_seconds", .gauge, "When the last reading arrived", devices) {
          $0.lastReading.map { [([], Double($0.milliseconds) / 1000)] } ?? []
        }
      },
      {
        family("connects_total", .counter, "Connections to the device", devices) {
          [([], Double($0.connects))]
        }
      },
      {
        family("disconnects_total", .counter, "Connections that have ended", devices) {
          [([], Double($0.disconnects))]
        }
      },
      {
        family("writes_total", .counter, "Commands by what became of them", devices) { device in
          device.writes.sorted { $0.key < $1.key }.map { ([("result", $0.key)], Double($0.value)) }
        }
      },
    ])
  }

  // MARK: Families

  private func gateway(_ info: JSONValue, _ health: JSONValue) -> [UInt8] {
    func number(_ value: JSONValue?) -> Double { Double(value?.integer ?? 0) }
    func truth(_ value: JSONValue?) -> Double { value == .bool(true) ? 1 : 0 }
    let counters = info["counters"]
    let adapters = info["adapters"]?.elements ?? []
    let name = { (adapter: JSONValue) in ("adapter", adapter["name"]?.text ?? "") }
    let results = [("sent", "sent"), ("lost", "lost"), ("rejected", "rejected_by_broker")]
    var bytes: [UInt8] = []
    func add(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
      append("microbit_gateway_\(name)", kind, help, samples, to: &bytes)
    }
    add("info", .gauge, "The gateway's version", [([("version", info["version"]?.text ?? "")], 1)])
    add("healthy", .gauge, "Whether the gateway itself has no fault", [([], truth(health["healthy"]))])
    add(
      "adapter_on", .gauge, "Whether the adapter can be used",
      adapters.map { ([name($0)], $0["state"] == "on" ? 1 : 0) })
    add(
      "mqtt_connected", .gauge, "Whether there is a connection to the broker",
      [([], truth(info["broker"]?["connected"]))])
    add(
      "mqtt_messages_total", .counter, "Messages to the broker",
      results.map { ([("result", $0.0)], number(counters?[$0.1])) })
    add(
      "mqtt_queued_messages", .gauge, "Messages that wait for the broker", [([], number(counters?["queued"]))]
    )
    add("spool_messages", .gauge, "Readings in the spool", [([], number(info["spool"]?["messages"]))])
    add(
      "spool_dropped_total", .counter, "Readings that the spool lost", [([], number(info["spool"]?["lost"]))])
    add(
      "recovery_steps_total", .counter, "Steps to mend an adapter",
      adapters.compactMap { adapter in
        adapter["recovery"].map { ([name(adapter), ("step", $0["step"]?.text ?? "")], number($0["count"])) }
      })
    add(
      "malformed_total", .counter, "Values that could not be decoded", [([], number(counters?["malformed"]))])
    add("http_connections", .gauge, "Clients of this server", [([], Double(connections))])
    add("http_streams", .gauge, "Clients that get events", [([], Double(state.streams.count))])
    return bytes
  }

  private func process() -> [UInt8] {
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
    if let folder = opendir("/proc/self/fd") {
      // `.`, `..` and the descriptor of the folder are not counted.
      var count = -3
      while readdir(folder) != nil { count += 1 }
      closedir(folder)
      add("open_fds", .gauge, "Open file descriptors", Double(count))
    }
    add(
      "start_time_seconds", .gauge, "When the process was started", Double(state.started.milliseconds) / 1000)
    return bytes
  }

  private func family(
    _ name: String, _ kind: Kind, _ help: String, _ devices: [WebDevice],
    _ samples: @LoopActor (WebDevice) -> [Sample]
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    let all = devices.flatMap { device in
      samples(device).map { ([("device", device.device.id.description)] + $0.labels, $0.value) }
    }
    append("microbit_gateway_\(name)", kind, help, all, to: &bytes)
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
  /// The properties and values, with their names.
  fileprivate var known: [(name: String, state: PropertyState)] {
    zip(device.profile.properties, properties).map { ($0.name, $1) }
      + device.values.compactMap { value in values[value.key].map { (value.property.name, $0) } }
  }

  /// The last numbers.
  fileprivate var numbers: [(property: String, field: String, unit: String, number: Double)] {
    let all =
      zip(device.profile.properties, properties).map { ($0, $1) }
      + device.values.compactMap { value in values[value.key].map { (value.property, $0) } }
    return all.filter { $0.0.kind == .state }.flatMap { property, state in
      let unit = property.unit ?? ""
      guard case .record(let fields) = state.value else {
        return state.value?.historyNumber.map { [(property.name, "", unit, $0)] } ?? []
      }
      return zip(property.codec.fields ?? [], fields).compactMap { name, value in
        value?.historyNumber.map { (property.name, name, unit, $0) }
      }
    }
  }
}
