import FoundationEssentials
import Testing

/// Runs the examples of the pages on MQTT: sends their messages, and expects their answers.
@Suite struct DocumentationTests {
  private static let pages = ["docs/mqtt.md", "docs/requests.md"]

  @Test("Every example of the pages on MQTT works as documented")
  func examples() async throws {
    let text = try Self.pages.map { try String(contentsOfFile: $0, encoding: .utf8) }.joined()
      .replacing("living-room", with: Fixture.gatewayID)
    let exchanges = DocumentExample.all(in: text).flatMap(\.steps).compactMap { step in
      if case .exchange(let exchange) = step { exchange } else { nil }
    }
    try #require(exchanges.count > 20, "too few examples: are these the pages?")
    var plan = Plan(devices: 2, decoys: 1, period: 1000)
    plan.simulator = [
      "--services", "temperature,accelerometer", "--address", "0=C5:A1:B2:C3:D4:E4", "--address",
      "1=C5:A1:B2:C3:D4:E5",
    ]
    plan.gateway = #""area":"Living room""#
    plan.entries = """
      {"match":{"identifier":"C5:A1:B2:C3:D4:E4"},"id":"window","name":"Window","area":"Kitchen"},
      {"match":{"name_prefix":"BBC micro:bit"}}
      """
    try await withFixture(plan) { fixture in
      for id in ["window", "c5a1b2c3d4e5"] {
        try await fixture.message("\(id)/info") { (try? $0.json())?["serial"] != nil }
      }
      for exchange in exchanges { try await exchange.run(in: fixture) }
    }
  }
}
