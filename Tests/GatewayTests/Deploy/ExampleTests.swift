import GATT
import Glibc
import JSON
import MQTT
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

private let python = "/usr/bin/python3"

/// The examples in deploy/ for Telegraf and Grafana use topics and keys that exist.
@Suite struct ExampleTests {
  let contract: TopicContract

  init() throws {
    contract = try TopicContract()
  }

  func lines(_ name: String) throws -> [String] {
    String(decoding: try shipped(name), as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test func telegrafSubscribesToPublishedTopics() throws {
    let text = try lines("deploy/telegraf/telegraf.conf")
    let topics = text.filter { $0.contains("topics = ") }
      .flatMap { $0.matches(of: #/"([^"]+)"/#).map { String($0.output.1) } }
    #expect(
      topics.map { contract.publishedTopics(matching: $0).map(\.string) } == [
        ["microbit/kitchen/info"], ["microbit/kitchen/readings"], ["microbit/kitchen/availability"],
        ["microbit/bridge/attic/state"],
      ])
    // Each topic has one pattern, with as many levels as the topic, and so have the tags.
    let parsed = text.filter { $0.contains("    topic = ") }
      .flatMap { $0.matches(of: #/"([^"]+)"/#).map { String($0.output.1) } }
    let tags = text.filter { $0.contains("    tags = ") }
      .flatMap { $0.matches(of: #/"([^"]+)"/#).map { String($0.output.1) } }
    #expect(parsed.count == topics.count && tags.count == topics.count)
    for (index, topic) in topics.enumerated() {
      let published = try #require(contract.publishedTopics(matching: topic).first)
      #expect(TopicFilter(parsed[index])?.matches(published) == true)
      let levels = published.string.split(separator: "/")
      let names = tags[index].split(separator: "/")
      #expect(names.count == levels.count)
      for (name, level) in zip(names, levels) where name != "_" {
        #expect(String(level) == ["device": "kitchen", "gateway": "attic"][name])
      }
    }
  }

  /// The queries for the parts of a reading use keys that a reading has. scripts/test-telegraf evaluates those for the value.
  @Test func telegrafReadsKeysOfAReading() throws {
    let encoder = ReadingEncoder(
      property: .microbitTemperature, gateway: contract.map.gateway, run: RunID())
    let reading = encoder.encode(
      Reading(property: 0, value: .integer(21), time: .now, sequence: 1), sequence: 1)
    guard case .object(let members) = try JSONParser.parse(reading) else { throw Failure("no object") }
    let text = try lines("deploy/telegraf/telegraf.conf")
    for line in [
      #"    timestamp = "time""#, #"      property = "property""#, #"      gateway = "gateway""#,
    ] { #expect(text.contains(line), "\(line)") }
    for key in ["time", "property", "gateway", "value"] { #expect(members[key] != nil, "\(key)") }
    // A time format in the notation of Go.
    #expect(text.contains(#"    timestamp_format = "2006-01-02T15:04:05.000Z07:00""#))
    guard case .string(let time) = members["time"] else { throw Failure("no time") }
    #expect(time.utf8.count == "2006-01-02T15:04:05.000Z".utf8.count)
  }

  /// User name and password come from environment variables; without them, there is no login.
  @Test func telegrafLogsInToTheBroker() throws {
    let text = try lines("deploy/telegraf/telegraf.conf")
    let inputs = text.count { $0 == "[[inputs.mqtt_consumer]]" }
    #expect(inputs == 4)
    #expect(text.count { $0 == #"  username = "${MQTT_USER:-}""# } == inputs)
    #expect(text.count { $0 == #"  password = "${MQTT_PASSWORD:-}""# } == inputs)
  }

  /// The processor's script is Starlark and also valid Python: labels and areas of `info` become tags.
  @Test(.enabled(if: access(python, X_OK) == 0, "needs Python"))
  func telegrafAddsLabelAndArea() async throws {
    let text = try lines("deploy/telegraf/telegraf.conf").joined(separator: "\n")
    let script = try #require(text.firstMatch(of: #/source = '''((?s:.*?))'''/#)).output.1
    let process = try ChildProcess(python, ["-c", Self.metrics, String(script)])
    #expect(try await process.exitStatus() == 0, "\(process.text)")
    #expect(
      process.text.split(separator: "\n") == [
        "microbit device=kitchen name=kitchen area=no area",
        "microbit device=kitchen name=Cooker area=Kitchen",
        "microbit_availability device=kitchen name=Cooker area=Kitchen",
        "microbit device=hall name=BBC micro:bit [zuvog] area=no area",
        "microbit device=kitchen name=kitchen area=no area",
      ])
  }

  /// Passes metrics to the script as Telegraf does, and prints those that it returns.
  private static let metrics = """
    import json, sys, types
    json.decode = json.loads
    script = {"json": json, "load": lambda *_: None}
    exec(sys.argv[1], script)
    def give(name, device, **fields):
        metric = script["apply"](types.SimpleNamespace(name=name, tags={"device": device}, fields=fields))
        if metric: print(name, *(f"{key}={value}" for key, value in metric.tags.items()))
    give("microbit", "kitchen", value=21)
    give("microbit_info", "kitchen", info=json.dumps({"name": "Cooker", "bluetooth_name": "x", "area": "Kitchen"}))
    give("microbit_info", "hall", info=json.dumps({"name": "BBC micro:bit [zuvog]"}))
    give("microbit", "kitchen", value=21)
    give("microbit_availability", "kitchen", online=1)
    give("microbit", "hall", value=20)
    give("microbit_info", "kitchen", info="")
    give("microbit", "kitchen", value=21)
    give("microbit", "kitchen")
    """

  /// Grafana queries the measurements that Telegraf writes.
  /// Dashboard and alert rules use the metrics of docs/http.md.
  @Test func prometheusFilesUseKnownMetrics() throws {
    let known = String(decoding: try shipped("docs/http.md"), as: UTF8.self)
    var count = 0
    for file in ["deploy/grafana/prometheus.json", "deploy/prometheus/microbit-gateway.rules.yml"] {
      for match in String(decoding: try shipped(file), as: UTF8.self).matches(
        of: #/(microbit_gateway_[a-z_]+)/#)
      {
        count += 1
        #expect(known.contains("`\(match.output.1)"), "\(file): \(match.output.1)")
      }
    }
    #expect(count > 15)
  }

  @Test func grafanaQueriesTelegrafMeasurements() throws {
    guard case .object(let dashboard) = try JSONParser.parse(shipped("deploy/grafana/dashboard.json")),
      case .array(let panels) = dashboard["panels"]
    else { throw Failure("no dashboard") }
    let text = try lines("deploy/telegraf/telegraf.conf")
    let measurements = text.flatMap {
      $0.matches(of: #/(?:name_override = "|metric_name = "')([a-z_]+)/#).map { String($0.output.1) }
    }
    #expect(
      measurements == ["microbit_info", "microbit", "microbit", "microbit_availability", "microbit_gateway"])
    var queried = Set<String>()
    var ids = Set<Int>()
    for case .object(let panel) in panels {
      guard case .integer(let id) = panel["id"], case .array(let targets) = panel["targets"],
        case .object(let target) = targets.first, case .string(let query) = target["query"]
      else {
        Issue.record("a panel without id or query")
        continue
      }
      #expect(ids.insert(id).inserted)
      let match = try #require(query.firstMatch(of: #/_measurement == "([a-z_]+)"/#))
      queried.insert(String(match.output.1))
      let field = try #require(query.firstMatch(of: #/_field == "([a-z]+)"/#)).output.1
      #expect(field == (match.output.1 == "microbit" ? "value" : "online"))
      // The user chooses the data source.
      #expect(panel["datasource"] == ["type": "influxdb", "uid": "${datasource}"])
    }
    // `microbit_info` only supplies tags of the other measurements.
    #expect(queried == Set(measurements.dropFirst()))
  }
}
