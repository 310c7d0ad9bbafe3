import JSON
import MQTT
import TestSupport
import Testing

@testable import Bridge

/// deploy/node-red/flow.json can be imported by Node-RED, and uses topics that exist.
@Suite struct NodeREDFlowTests {
  let contract: TopicContract
  let nodes: [Node]

  struct Node {
    let id: String
    let type: String
    let members: JSONObject

    func text(_ name: String) -> String? {
      guard case .string(let text) = members[name] else { return nil }
      return text
    }

    /// The ids that each output is wired to; nil for a node that is not on a tab.
    var wires: [[String]]? {
      guard case .array(let outputs) = members["wires"] else { return nil }
      return outputs.map { output in
        guard case .array(let ids) = output else { return [] }
        return ids.map { id in
          guard case .string(let text) = id else { return "" }
          return text
        }
      }
    }
  }

  init() throws {
    contract = try TopicContract()
    guard case .array(let elements) = try JSONParser.parse(shipped("deploy/node-red/flow.json")) else {
      throw NotAFlow()
    }
    nodes = try elements.map { element in
      guard case .object(let members) = element, case .string(let id) = members["id"],
        case .string(let type) = members["type"]
      else { throw NotAFlow() }
      return Node(id: id, type: type, members: members)
    }
  }

  struct NotAFlow: Error {}

  // MARK: The format

  /// What a type of node needs besides `id` and `type`, from `registerType(…, { defaults })` in Node-RED 5.0 and
  /// @flowfuse/node-red-dashboard 1.30.
  private enum Kind {
    /// A node of the whole workspace.
    case configuration
    /// A node with inputs (0 or 1) and outputs; nil if the node itself has a field with their number.
    case onATab(inputs: Int, outputs: Int?)
  }

  private static let types: [String: (kind: Kind, fields: [String], references: [String: String])] = [
    "tab": (.configuration, ["label", "disabled", "info", "env"], [:]),
    "mqtt-broker": (
      .configuration,
      [
        "name", "broker", "port", "clientid", "autoConnect", "usetls", "protocolVersion", "keepalive",
        "cleansession", "autoUnsubscribe", "birthTopic", "birthQos", "birthRetain", "birthPayload",
        "birthMsg", "closeTopic", "closeQos", "closeRetain", "closePayload", "closeMsg", "willTopic",
        "willQos", "willRetain", "willPayload", "willMsg", "userProps", "sessionExpiry",
      ], [:]
    ),
    "ui-base": (.configuration, ["name", "path"], [:]),
    "ui-theme": (.configuration, ["name", "colors", "sizes"], [:]),
    "ui-page": (
      .configuration, ["name", "path", "icon", "layout", "order"], ["ui": "ui-base", "theme": "ui-theme"]
    ),
    "ui-group": (.configuration, ["name", "width", "height", "order", "showTitle"], ["page": "ui-page"]),
    "mqtt in": (
      .onATab(inputs: 0, outputs: 1), ["topic", "qos", "datatype", "nl", "rap", "rh", "inputs"],
      ["broker": "mqtt-broker"]
    ),
    "mqtt out": (
      .onATab(inputs: 1, outputs: 0),
      ["topic", "qos", "retain", "respTopic", "contentType", "userProps", "correl", "expiry"],
      ["broker": "mqtt-broker"]
    ),
    "function": (
      .onATab(inputs: 1, outputs: nil),
      ["func", "outputs", "timeout", "noerr", "initialize", "finalize", "libs"], [:]
    ),
    "debug": (.onATab(inputs: 1, outputs: 0), ["active", "tosidebar", "complete", "targetType"], [:]),
    "comment": (.onATab(inputs: 0, outputs: 0), ["info"], [:]),
    "ui-chart": (
      .onATab(inputs: 1, outputs: 1),
      [
        "label", "order", "chartType", "category", "categoryType", "xAxisProperty", "xAxisPropertyType",
        "xAxisType", "yAxisProperty", "yAxisPropertyType", "action", "removeOlder", "removeOlderUnit",
        "width", "height",
      ], ["group": "ui-group"]
    ),
    "ui-slider": (
      .onATab(inputs: 1, outputs: 1),
      ["label", "order", "passthru", "outs", "topic", "topicType", "min", "max", "step", "width", "height"],
      ["group": "ui-group"]
    ),
    "ui-dropdown": (
      .onATab(inputs: 1, outputs: 1),
      ["label", "order", "passthru", "multiple", "options", "topic", "topicType", "width", "height"],
      ["group": "ui-group"]
    ),
    "ui-text": (
      .onATab(inputs: 1, outputs: 0),
      ["label", "order", "format", "layout", "value", "valueType", "width", "height"],
      ["group": "ui-group"]
    ),
    "ui-notification": (
      .onATab(inputs: 1, outputs: 1), ["position", "displayTime", "outputs", "raw"], ["ui": "ui-base"]
    ),
  ]

  @Test func everyNodeIsComplete() throws {
    let byID = Dictionary(nodes.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    #expect(byID.count == nodes.count, "duplicate id")
    #expect(byID[""] == nil)
    let tabs = nodes.filter { $0.type == "tab" }
    #expect(tabs.count == 1)
    for node in nodes {
      let type = try #require(Self.types[node.type], "\(node.id) has a type that may not be installed")
      for field in ["name"] + type.fields where !(field == "name" && node.type == "tab") {
        #expect(node.members[field] != nil, "\(node.id): \(field)")
      }
      for (field, expected) in type.references {
        #expect(node.text(field).flatMap { byID[$0] }?.type == expected, "\(node.id): \(field)")
      }
      switch type.kind {
      case .configuration:
        #expect(node.members["z"] == nil && node.members["wires"] == nil, "\(node.id)")
      case .onATab(_, let outputs):
        #expect(node.text("z") == tabs.first?.id, "\(node.id)")
        for field in ["x", "y"] {
          guard case .integer = node.members[field] else {
            Issue.record("\(node.id): \(field)")
            continue
          }
        }
        let count = try #require(node.wires, "\(node.id)").count
        switch outputs {
        case .some(let outputs): #expect(count == outputs || node.wires == [[]], "\(node.id)")
        case nil: #expect(node.members["outputs"] == .integer(count), "\(node.id)")
        }
      }
    }
  }

  @Test func everyWireEndsAtANodeWithAnInput() throws {
    var wired = Set<String>()
    for node in nodes {
      for id in node.wires.map({ $0.flatMap { $0 } }) ?? [] {
        let end = try #require(nodes.first { $0.id == id }, "\(node.id) is wired to nothing")
        guard case .onATab(inputs: 1, outputs: _) = Self.types[end.type]?.kind else {
          Issue.record("\(node.id) is wired to \(id), which has no input")
          continue
        }
        wired.insert(id)
      }
    }
    for node in nodes {
      guard case .onATab(inputs: 1, outputs: _) = Self.types[node.type]?.kind else { continue }
      #expect(wired.contains(node.id), "no wire leads to \(node.id)")
    }
  }

  @Test func hasOneBrokerOnLocalhost() throws {
    let broker = try #require(nodes.first { $0.type == "mqtt-broker" })
    #expect(broker.text("broker") == "localhost")
    #expect(broker.members["port"] == .integer(1883))
    #expect(nodes.count { $0.type == "mqtt-broker" } == 1)
  }

  // MARK: The topics

  @Test func subscribesToPublishedTopics() throws {
    let inputs = nodes.filter { $0.type == "mqtt in" }
    #expect(inputs.count == 6)
    for node in inputs {
      let topic = try #require(node.text("topic"))
      #expect(!contract.publishedTopics(matching: topic).isEmpty, "\(topic) is not published")
      // No wildcard matches the last level, which distinguishes one kind of message from the others.
      let last = topic.split(separator: "/").last
      #expect(
        contract.publishedTopics(matching: topic).allSatisfy { $0.string.split(separator: "/").last == last })
    }
  }

  @Test func sendsCommandsThatTheGatewayAccepts() throws {
    let outputs = nodes.filter { $0.type == "mqtt out" }
    #expect(outputs.count == 1)
    for output in outputs {
      var topics = [output.text("topic") ?? ""].filter { !$0.isEmpty }
      // An empty topic means the topic of the message, which the function nodes set.
      for node in nodes where node.type == "function" && node.wires?.joined().contains(output.id) == true {
        topics += templates(in: node.text("func") ?? "").filter { $0.hasPrefix("microbit/") }
      }
      #expect(topics == ["microbit/kitchen/period/set"])
      for topic in topics {
        #expect(contract.map.inbound(topic) == .set(.device(contract.device), property: "period"))
        // The menu also offers all devices.
        let everybody = topic.replacing("/kitchen/", with: "/all/")
        #expect(contract.map.inbound(everybody) == .set(.all, property: "period"))
      }
    }
  }

  /// The template strings of a script, with the device's id in place of each expression.
  private func templates(in script: String) -> [String] {
    script.split(separator: "`", omittingEmptySubsequences: false).enumerated().compactMap {
      (index, part) -> String? in
      guard !index.isMultiple(of: 2) else { return nil }
      return String(part).replacing(#/\$\{[^}]*\}/#, with: contract.device.description)
    }
  }
}
