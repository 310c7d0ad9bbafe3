import Configuration
import GATT
import JSON
import MQTT
import TestSupport
import Testing

@testable import Bridge
@testable import Devices
@testable import HomeAssistant

/// The examples in deploy/ speak of entities, topics and keys that there are.
@Suite struct ExampleTests {
  let contract: TopicContract

  init() throws {
    contract = try TopicContract()
  }

  func lines(_ name: String) throws -> [String] {
    String(decoding: try shipped(name), as: UTF8.self).split(separator: "\n").map(String.init)
  }

  // MARK: Home Assistant

  /// Entities as Home Assistant calls them: by the names of device and entity when it first sees them.
  func entities() throws -> Set<String> {
    let discovery = Discovery(prefix: "homeassistant", qos: .atLeastOnce, topics: contract.map)
    var documents = [discovery.document(ofGatewayIn: nil, adapters: ["hci0"])]
    for (index, name) in ["Kitchen", "Living room"].enumerated() {
      let address = BluetoothAddress(truncating: UInt64(index))
      var device = DeviceDescription(
        id: DeviceID(address), identifier: address, profile: contract.profile)
      device.label = name
      let topics = contract.map.topics(of: device.id, device.profile)
      documents.append(discovery.document(of: device, topics: topics))
    }
    var entities = Set<String>()
    for document in documents {
      guard case .string(let device) = try members(document, "dev")["name"] else { continue }
      for member in try members(document, "cmps").members {
        guard case .object(let component) = member.value, case .string(let platform) = component["p"],
          case .string(let name) = component["name"]
        else { continue }
        entities.insert("\(platform).\(slug("\(device) \(name)"))")
      }
    }
    return entities
  }

  private func members(_ document: DiscoveryDocument, _ key: String) throws -> JSONObject {
    guard case .object(let whole) = try JSONParser.parse(document.payload),
      case .object(let part) = whole[key]
    else { throw Failure("no \(key)") }
    return part
  }

  private func slug(_ name: String) -> String {
    name.lowercased().split { !$0.isLetter && !$0.isNumber }.joined(separator: "_")
  }

  @Test(arguments: ["deploy/home-assistant/dashboard.yaml", "deploy/home-assistant/automations.yaml"])
  func entitiesAreThoseOfDiscovery(file: String) throws {
    let known = try entities()
    #expect(known.contains("sensor.kitchen_temperature"))
    let pattern = #/\b(?:sensor|binary_sensor|number|button)\.[a-z0-9_]+/#
    let named = try lines(file).filter { !$0.contains("action:") }
      .flatMap { $0.matches(of: pattern).map { String($0.output) } }
    #expect(named.count > 4)
    for entity in named { #expect(known.contains(entity), "\(entity)") }
  }

  @Test func automationsSendWhatTheGatewayUnderstands() throws {
    let text = try lines("deploy/home-assistant/automations.yaml")
    let topics = text.filter { $0.contains(" topic: ") }.compactMap { $0.split(separator: " ").last }
    #expect(topics == ["microbit/all/period/set"])
    for topic in topics { #expect(contract.map.inbound(String(topic)) == .set(.all, property: "period")) }
    // The one that is only spoken of.
    let area = try #require(AreaName("kitchen"))
    let spoken = try #require(
      text.joined(separator: " ").firstMatch(of: #/microbit\/area\/[^ ]+/#).map { String($0.output) })
    #expect(contract.map.inbound(spoken) == .set(.area(area), property: "period"))
    for match in text.joined().matches(of: #/\{\{ (\d+) if [^}]* else (\d+) \}\}/#) {
      for period in [match.output.1, match.output.2].compactMap({ Int($0) }) {
        #expect(Property.microbitPeriod.problem(with: .integer(period)) == nil)
      }
    }
  }

  // MARK: Telegraf and Grafana

  @Test func telegrafListensToWhatTheGatewayPublishes() throws {
    let text = try lines("deploy/telegraf/telegraf.conf")
    let topics = text.filter { $0.contains("topics = ") }
      .flatMap { $0.matches(of: #/"([^"]+)"/#).map { String($0.output.1) } }
    #expect(
      topics.map { contract.brings($0).map(\.string) } == [
        ["microbit/kitchen/readings"], ["microbit/kitchen/availability"], ["microbit/bridge/attic/state"],
      ])
    // One pattern of levels for each, as long as the topics that it takes apart, and with it the tags.
    let parsed = text.filter { $0.contains("    topic = ") }
      .flatMap { $0.matches(of: #/"([^"]+)"/#).map { String($0.output.1) } }
    let tags = text.filter { $0.contains("    tags = ") }
      .flatMap { $0.matches(of: #/"([^"]+)"/#).map { String($0.output.1) } }
    #expect(parsed.count == topics.count && tags.count == topics.count)
    for (index, topic) in topics.enumerated() {
      let published = try #require(contract.brings(topic).first)
      #expect(TopicFilter(parsed[index])?.matches(published) == true)
      let levels = published.string.split(separator: "/")
      let names = tags[index].split(separator: "/")
      #expect(names.count == levels.count)
      for (name, level) in zip(names, levels) where name != "_" {
        #expect(String(level) == ["device": "kitchen", "gateway": "attic"][name])
      }
    }
  }

  /// The queries for the parts of a reading name keys that a reading has.
  @Test func telegrafReadsWhatAReadingHolds() throws {
    let encoder = ReadingEncoder(
      property: .microbitTemperature, gateway: contract.map.gateway, run: RunID())
    let reading = encoder.encode(
      Reading(property: 0, value: .integer(21), time: .now, sequence: 1), sequence: 1)
    guard case .object(let members) = try JSONParser.parse(reading) else { throw Failure("no object") }
    let text = try lines("deploy/telegraf/telegraf.conf")
    for line in [
      #"    timestamp = "time""#, #"      property = "property""#, #"      gateway = "gateway""#,
      #"      value = "number(value)""#,
    ] { #expect(text.contains(line), "\(line)") }
    for key in ["time", "property", "gateway", "value"] { #expect(members[key] != nil, "\(key)") }
    // How Go writes the form of a time.
    #expect(text.contains(#"    timestamp_format = "2006-01-02T15:04:05.000Z07:00""#))
    guard case .string(let time) = members["time"] else { throw Failure("no time") }
    #expect(time.utf8.count == "2006-01-02T15:04:05.000Z".utf8.count)
  }

  /// Grafana asks for what Telegraf writes.
  @Test func grafanaShowsWhatTelegrafWrites() throws {
    guard case .object(let dashboard) = try JSONParser.parse(shipped("deploy/grafana/dashboard.json")),
      case .array(let panels) = dashboard["panels"]
    else { throw Failure("no dashboard") }
    let text = try lines("deploy/telegraf/telegraf.conf")
    let measurements = text.flatMap {
      $0.matches(of: #/(?:name_override = "|metric_name = "')([a-z_]+)/#).map { String($0.output.1) }
    }
    #expect(measurements == ["microbit", "microbit_availability", "microbit_gateway"])
    var asked = Set<String>()
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
      asked.insert(String(match.output.1))
      let field = try #require(query.firstMatch(of: #/_field == "([a-z]+)"/#)).output.1
      #expect(field == (match.output.1 == "microbit" ? "value" : "online"))
      // The data source is the user's to choose.
      #expect(panel["datasource"] == ["type": "influxdb", "uid": "${datasource}"])
    }
    #expect(asked == Set(measurements))
  }
}
