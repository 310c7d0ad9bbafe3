import GATT
import Glibc
import JSON
import TestSupport
import Testing

@testable import Bridge

private let node = "/usr/bin/node"

/// The scripts of the flow's function nodes, run by Node.js as Node-RED runs them: messages go in at the nodes that
/// listen, and what reaches the nodes without a script is looked at.
@Suite(.enabled(if: access(node, X_OK) == 0, "needs Node.js"))
struct NodeREDScriptTests {
  /// Prints a line for every message that reaches a node which is no function: `id payload`, or the whole message.
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

  /// What reaches the ends of the flow, as `id {message}`, when these messages leave the nodes in `from`.
  ///
  /// - Parameter prelude: runs before the scripts.
  func run(_ messages: String, prelude: String = "") async throws -> [String] {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let process = try ChildProcess(
      node, ["-e", prelude + Self.runner, "/\(root)/deploy/node-red/flow.json", messages])
    #expect(try await process.exitStatus() == 0, "\(process.text)")
    return process.text.split(separator: "\n").map(String.init)
  }

  @Test func putsReadingsAtTheirOwnTimes() async throws {
    let ends = try await run(
      """
      [{"from":"microbit-readings","topic":"microbit/kitchen/readings",
        "payload":{"property":"temperature","value":21,"time":"2026-11-20T18:01:02.345Z"}},
       {"from":"microbit-readings","topic":"microbit/kitchen/readings",
        "payload":{"property":"light","value":3,"time":"2026-11-20T18:01:02.345Z"}},
       {"from":"microbit-readings","topic":"microbit/kitchen/readings","payload":null}]
      """)
    #expect(ends == [#"microbit-chart {"topic":"kitchen","payload":{"x":1795197662345,"y":21}}"#])
  }

  @Test func setsThePeriodAndShowsWhatCameOfIt() async throws {
    let ends = try await run(
      """
      [{"from":"microbit-slider","payload":500},
       {"from":"microbit-info","topic":"microbit/kitchen/info","payload":{"label":"Kitchen"}},
       {"from":"microbit-info","topic":"microbit/c5a1b2c3d4e5/info","payload":{}},
       {"from":"microbit-info","topic":"microbit/c5a1b2c3d4e5/info","payload":""},
       {"from":"microbit-period","topic":"microbit/kitchen/period","payload":1000},
       {"from":"microbit-choice","payload":"kitchen"},
       {"from":"microbit-slider","payload":2000},
       {"from":"microbit-result","topic":"microbit/kitchen/period/result",
        "payload":{"status":"applied","requested":1,"actual":1,"transaction":"somebody else's"}},
       {"from":"microbit-result","topic":"microbit/kitchen/period/result",
        "payload":{"status":"applied","requested":1,"actual":1}},
       {"from":"microbit-period","topic":"microbit/kitchen/period","payload":2000},
       {"from":"microbit-period","topic":"microbit/hall/period","payload":3000}]
      """)
    #expect(ends.first == #"microbit-confirmation {"payload":"choose a micro:bit first"}"#)
    func choices(_ others: String...) -> String {
      let options = [#"{"label":"All micro:bits","value":"all"}"#] + others
      return #"microbit-choice {"ui_update":{"options":[\#(options.joined(separator: ","))]}}"#
    }
    let kitchen = #"{"label":"Kitchen (kitchen)","value":"kitchen"}"#
    let nameless = #"{"label":"c5a1b2c3d4e5 (c5a1b2c3d4e5)","value":"c5a1b2c3d4e5"}"#
    #expect(
      Array(ends.dropFirst().prefix(4)) == [
        choices(kitchen), choices(nameless, kitchen), choices(kitchen), #"microbit-slider {"payload":1000}"#,
      ])
    let sent = try #require(ends.dropFirst(5).first)
    // The gateway takes it for what it is.
    guard sent.hasPrefix("microbit-set "),
      case .object(let message) = try JSONParser.parse(Array(sent.utf8.dropFirst("microbit-set ".utf8.count))),
      let payload = message["payload"]
    else { throw Failure("not a command: \(sent)") }
    #expect(message["topic"] == .string("microbit/kitchen/period/set"))
    let command = try CommandPayload(payload.bytes, for: .microbitPeriod)
    #expect(command.value == .integer(2000))
    #expect(command.transaction?.hasPrefix("node-red-") == true)
    #expect(
      Array(ends.dropFirst(6)) == [
        #"microbit-confirmation {"payload":"2000 ms: sent to kitchen"}"#,
        #"microbit-slider {"payload":2000}"#,
      ])
  }

  /// The transaction is the script's own: it is taken from the command, and given to results of every kind.
  @Test(arguments: [
    (#""status":"applied","requested":2000,"actual":2000"#, "2000 ms, confirmed"),
    (#""status":"adjusted","requested":2000,"actual":2048"#, "2048 ms instead of 2000 ms"),
    (#""status":"pending","requested":2000"#, "away; it will be set when it is back"),
    (#""status":"superseded","requested":2000"#, "a later command took its place"),
    (#""status":"rejected","reason":"0 is below 20""#, "refused: 0 is below 20"),
    (#""status":"failed","requested":2000,"reason":"x""#, "failed: x"),
    (#""status":"timeout","requested":2000,"reason":"x""#, "no answer: x"),
  ])
  func tellsEveryStatus(result: String, text: String) async throws {
    // Numbers by chance and by the clock would tell them apart; here they are always the same.
    let prelude = "Math.random = () => 0.5; Date.now = () => 0;"
    let messages = """
      [{"from":"microbit-choice","payload":"all"},{"from":"microbit-slider","payload":2000},
       {"from":"microbit-result","topic":"microbit/hall/period/result",
        "payload":{"status":"applied","actual":2000,"transaction":"node-red-0-i"}},
       {"from":"microbit-result","topic":"microbit/attic/period/result",
        "payload":{\(result),"transaction":"node-red-0-i"}}]
      """
    let ends = try await run(messages, prelude: prelude)
    #expect(ends.last == #"microbit-confirmation {"payload":"attic: \#(text); hall: 2000 ms, confirmed"}"#)
  }

  @Test func raisesAnAlarmWhenSomethingGoesOffline() async throws {
    func message(_ from: String, _ topic: String, _ payload: String) -> String {
      #"{"from":"microbit-\#(from)","topic":"microbit/\#(topic)","payload":"\#(payload)"}"#
    }
    let messages = [
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
      "hall", "hall", "hall", "hall, kitchen", "hall, kitchen", "gateway attic, hall, kitchen",
      "gateway attic, kitchen", "gateway attic", "none",
    ]
    #expect(away == expected.map { #"microbit-away {"payload":"\#($0)"}"# })
    let alarms = ends.filter { $0.hasPrefix("microbit-notification") }
    #expect(
      alarms == [
        #"microbit-notification {"topic":"kitchen","payload":"kitchen is offline"}"#,
        #"microbit-notification {"topic":"gateway attic","payload":"gateway attic is offline"}"#,
      ])
    #expect(ends.count { $0.hasPrefix("microbit-log") } == alarms.count)
  }
}
