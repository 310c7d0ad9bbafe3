import Configuration
import GATT
import Glibc
import JSON
import TestSupport
import Testing

@testable import Bridge
@testable import Devices

private let node = "/usr/bin/node"

/// The scripts of the flow's function nodes, run by Node.js as Node-RED runs them: messages enter at the input nodes,
/// and those that reach a node without a script are checked.
@Suite(.enabled(if: access(node, X_OK) == 0, "needs Node.js"))
struct NodeREDScriptTests {
  /// Prints a line `id {message}` for every message that reaches a node without a script.
  private static let runner = """
    const [file, messages] = process.argv.slice(1);
    const nodes = JSON.parse(require("fs").readFileSync(file));
    const store = () => {
      const values = {};
      return { get: (key) => values[key], set: (key, value) => { values[key] = value; } };
    };
    const flow = store();
    const contexts = new Map();
    const deliver = (id, msg) => {
      const node = nodes.find((node) => node.id === id);
      if (node.type !== "function") return console.log(id + " " + JSON.stringify(msg));
      if (!contexts.has(id)) contexts.set(id, store());
      const script = new Function("msg", "flow", "context", "node", node.func);
      const sent = script(msg, flow, contexts.get(id), { status() {} });
      if (sent === null || sent === undefined) return;
      const outputs = Array.isArray(sent) ? sent : [sent];
      outputs.forEach((out, index) => { if (out) emit(node, index, out); });
    };
    const emit = (node, output, msg) => {
      for (const id of node.wires[output]) deliver(id, structuredClone(msg));
    };
    for (const { from, ...msg } of JSON.parse(messages)) emit(nodes.find((node) => node.id === from), 0, msg);
    """

  /// The messages that reach the ends of the flow, as `id {message}`, after these messages leave the nodes in `from`.
  ///
  /// - Parameter prelude: runs before the scripts.
  func run(_ messages: String, prelude: String = "") async throws -> [String] {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let process = try ChildProcess(
      node, ["-e", prelude + Self.runner, "/\(root)/deploy/node-red/flow.json", messages])
    #expect(try await process.exitStatus() == 0, "\(process.text)")
    return process.text.split(separator: "\n").map(String.init)
  }

  @Test func chartShowsReadingsWithTheirTimeAndDeviceLabel() async throws {
    let ends = try await run(
      """
      [{"from":"microbit-readings","topic":"microbit/hall/readings",
        "payload":{"property":"temperature","value":20,"time":"2026-11-20T18:01:02.345Z"}},
       {"from":"microbit-info","topic":"microbit/hall/info","payload":{"name":"Hall","area":"Ground floor"}},
       {"from":"microbit-readings","topic":"microbit/hall/readings",
        "payload":{"property":"temperature","value":21,"time":"2026-11-20T18:01:02.345Z"}},
       {"from":"microbit-readings","topic":"microbit/hall/readings",
        "payload":{"property":"light","value":3,"time":"2026-11-20T18:01:02.345Z"}},
       {"from":"microbit-readings","topic":"microbit/hall/readings","payload":null}]
      """)
    #expect(
      ends.filter { $0.hasPrefix("microbit-chart") } == [
        #"microbit-chart {"topic":"Hall","payload":{"x":1795197662345,"y":21}}"#
      ])
  }

  @Test func setsThePeriodAndShowsTheResult() async throws {
    let ends = try await run(
      """
      [{"from":"microbit-slider","payload":0.5},
       {"from":"microbit-info","topic":"microbit/kitchen/info","payload":{"name":"Cooker","area":"Kitchen"}},
       {"from":"microbit-info","topic":"microbit/c5a1b2c3d4e5/info","payload":{}},
       {"from":"microbit-info","topic":"microbit/c5a1b2c3d4e5/info","payload":""},
       {"from":"microbit-period","topic":"microbit/kitchen/period","payload":1000},
       {"from":"microbit-choice","payload":"kitchen"},
       {"from":"microbit-slider","payload":60},
       {"from":"microbit-result","topic":"microbit/kitchen/period/result",
        "payload":{"status":"applied","requested":1,"actual":1,"transaction":"another client's"}},
       {"from":"microbit-result","topic":"microbit/kitchen/period/result",
        "payload":{"status":"applied","requested":1,"actual":1}},
       {"from":"microbit-period","topic":"microbit/kitchen/period","payload":60000},
       {"from":"microbit-period","topic":"microbit/hall/period","payload":3000}]
      """)
    #expect(ends.first == #"microbit-confirmation {"payload":"choose a micro:bit first"}"#)
    let kitchen = ["area/kitchen": "Area Kitchen", "kitchen": "Cooker"]
    let choices = try ends.filter { $0.hasPrefix("microbit-choice") }.map(self.choices)
    #expect(
      choices == [kitchen, kitchen.merging(["c5a1b2c3d4e5": "c5a1b2c3d4e5"]) { old, _ in old }, kitchen])
    #expect(Array(ends.dropFirst(4).prefix(1)) == [#"microbit-slider {"payload":1}"#])
    let sent = try #require(ends.dropFirst(5).first)
    // The gateway accepts it.
    let message = try message(sent, to: "microbit-set")
    guard let payload = message["payload"] else { throw Failure("not a command: \(sent)") }
    #expect(message["topic"] == .string("microbit/kitchen/period/set"))
    let period = Property.microbitPeriod
    var sender = Sender(nil)
    let command = try Command(
      CommandPayload(payload.bytes), try DeviceID("kitchen"), period.name, period.codec, from: &sender)
    #expect(command.value == .integer(60000))
    #expect(sender.transaction?.text?.hasPrefix("node-red-") == true)
    #expect(
      Array(ends.dropFirst(6)) == [
        #"microbit-confirmation {"payload":"60 s: sent to Cooker"}"#,
        #"microbit-slider {"payload":60}"#,
      ])
  }

  private func message(_ end: String, to id: String) throws -> JSONObject {
    guard end.hasPrefix("\(id) "),
      case .object(let message) = try JSONParser.parse(Array(end.utf8.dropFirst(id.utf8.count + 1)))
    else { throw Failure("not for \(id): \(end)") }
    return message
  }

  /// The labels that the menu offers, by value, without the one for all micro:bits.
  private func choices(_ end: String) throws -> [String: String] {
    guard case .object(let update) = try message(end, to: "microbit-choice")["ui_update"],
      case .array(let options) = update["options"]
    else { throw Failure("no options: \(end)") }
    var labels: [String: String] = [:]
    for case .object(let option) in options {
      guard case .string(let value) = option["value"], case .string(let label) = option["label"] else {
        throw Failure("no option: \(option)")
      }
      labels[value] = label
    }
    #expect(labels.removeValue(forKey: "all") == "All micro:bits")
    return labels
  }

  /// Devices of the same name are distinguished by their ids, and areas are named in topics as the gateway reads them.
  @Test func offersEveryDeviceAndEveryArea() async throws {
    let ends = try await run(
      """
      [{"from":"microbit-info","topic":"microbit/one/info","payload":{"name":"Window","area":"Living Room"}},
       {"from":"microbit-info","topic":"microbit/two/info","payload":{"name":"Window","area":"Living Room"}},
       {"from":"microbit-choice","payload":"area/living-room"},
       {"from":"microbit-slider","payload":5}]
      """)
    let last = try #require(ends.last { $0.hasPrefix("microbit-choice") })
    #expect(
      try choices(last) == [
        "area/living-room": "Area Living Room", "one": "Window (one)", "two": "Window (two)",
      ])
    let sent = try #require(ends.first { $0.hasPrefix("microbit-set") })
    guard case .string(let topic) = try message(sent, to: "microbit-set")["topic"] else {
      throw Failure("no topic: \(sent)")
    }
    let area = try #require(AreaName("Living Room"))
    #expect(try TopicContract().map.inbound(topic) == .set(.area(area), property: "period"))
  }

  /// The results carry the transaction that the script generated for the command.
  @Test(arguments: [
    (#""status":"applied","requested":2000,"actual":2000"#, "2 s, confirmed"),
    (#""status":"adjusted","requested":2000,"actual":2048"#, "2.048 s instead of 2 s"),
    (#""status":"pending","requested":2000"#, "offline; it will be set when the micro:bit is back"),
    (#""status":"deferred","requested":2000"#, "the gateway stopped; it will be set after its next start"),
    (#""status":"superseded","requested":2000"#, "replaced by a later command"),
    (#""status":"rejected","reason":"0 is below 20""#, "refused: 0 is below 20"),
    (#""status":"failed","requested":2000,"reason":"x""#, "failed: x"),
    (#""status":"timeout","requested":2000,"reason":"x""#, "no answer: x"),
  ])
  func showsEveryStatus(result: String, text: String) async throws {
    // Makes the generated transaction predictable.
    let prelude = "Math.random = () => 0.5; Date.now = () => 0;"
    let messages = """
      [{"from":"microbit-choice","payload":"all"},{"from":"microbit-slider","payload":2},
       {"from":"microbit-result","topic":"microbit/hall/period/result",
        "payload":{"status":"applied","actual":2000,"transaction":"node-red-0-i"}},
       {"from":"microbit-result","topic":"microbit/attic/period/result",
        "payload":{\(result),"transaction":"node-red-0-i"}}]
      """
    let ends = try await run(messages, prelude: prelude)
    #expect(ends.last == #"microbit-confirmation {"payload":"attic: \#(text); hall: 2 s, confirmed"}"#)
  }

  @Test func notifiesWhenADeviceOrGatewayGoesOffline() async throws {
    let kitchen = #"{"from":"microbit-info","topic":"microbit/kitchen/info","payload":{"name":"Cooker"}}"#
    func message(_ from: String, _ topic: String, _ payload: String) -> String {
      #"{"from":"microbit-\#(from)","topic":"microbit/\#(topic)","payload":"\#(payload)"}"#
    }
    let messages = [
      kitchen,
      message("availability", "hall/availability", "offline"),
      message("availability", "kitchen/availability", "online"),
      message("state", "bridge/attic/state", "online"),
      message("availability", "kitchen/availability", "offline"),
      message("availability", "kitchen/availability", "offline"),
      message("state", "bridge/attic/state", "offline"),
      message("availability", "hall/availability", ""),
      message("availability", "kitchen/availability", "online"),
      message("state", "bridge/attic/state", "online"),
    ]
    let ends = try await run("[\(messages.joined(separator: ","))]")
    let away = ends.filter { $0.hasPrefix("microbit-away") }
    let expected = [
      "hall", "hall", "hall", "Cooker, hall", "Cooker, hall", "Cooker, gateway attic, hall",
      "Cooker, gateway attic", "gateway attic", "none",
    ]
    #expect(away == expected.map { #"microbit-away {"payload":"\#($0)"}"# })
    let alarms = ends.filter { $0.hasPrefix("microbit-notification") }
    #expect(
      alarms == [
        #"microbit-notification {"topic":"Cooker","payload":"Cooker is offline"}"#,
        #"microbit-notification {"topic":"gateway attic","payload":"gateway attic is offline"}"#,
      ])
    #expect(ends.count { $0.hasPrefix("microbit-log") } == alarms.count)
  }
}
