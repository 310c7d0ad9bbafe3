import Configuration
import Findings
import TestSupport
import Testing

@testable import Gateway

struct ConfigurationCheckTests {
  private func result(_ text: String) throws -> (ConfigurationCheck.Outcome, String) {
    let folder = try TemporaryFolder()
    let path = try folder.write(text, to: "config.json")
    return (ConfigurationCheck(path: path).run(), path)
  }

  @Test func validFileIsOK() throws {
    let (result, path) = try result(#"{"mqtt":{"host":"broker"}}"#)
    #expect(result.findings == [.ok(.configuration, "\(path) is valid")])
    #expect(result.configuration.mqtt.host == "broker")
  }

  @Test func whatIsOpenForSetUpIsAWarning() throws {
    let findings = try result(#"{"http":{"port":8000}}"#).0.findings
    #expect(findings.map(\.level) == [.ok, .warning])
    #expect(findings.last?.text == "nothing is set up yet")
  }

  @Test func errorsHaveALineNumber() throws {
    let (result, path) = try result(
      "{\n  \"mqtt\": {\"host\":\"broker\"},\n  \"devices\": [{\"period\": 0}]\n}")
    #expect(result.findings.count == 1)
    #expect(result.findings[0].level == .fault)
    #expect(result.findings[0].text.hasPrefix("\(path):3:"))
    #expect(result.findings[0].remedy != nil)
    // The other sections are used.
    #expect(result.broken == ["devices"])
    #expect(result.configuration.mqtt.host == "broker")
    #expect(!result.isUnreadable)
  }

  /// A mistake in a file of profiles, or in all of it, is none in config.json.
  @Test(arguments: [#"{"mqtt":{"title":"x"}}"#, "{,}"])
  func brokenProfilesAreLeftOut(profiles: String) throws {
    let folder = try TemporaryFolder()
    try folder.write(profiles, to: "mine.json")
    let (result, _) = try result(
      #"{"gateway":{"id":"hall"},"profiles_directory":"\#(folder.path)"}"#)
    #expect(result.broken == ["profiles_directory"] && !result.isUnreadable)
    #expect(result.gateway?.description == "hall")
  }

  @Test func brokenSyntaxMakesTheFileUnreadable() throws {
    let (result, path) = try result("{\"mqtt\": {,}}")
    #expect(result.isUnreadable)
    #expect(result.findings.first?.text.hasPrefix("\(path):1:") == true)
  }

  @Test func missingFileIsAFaultWithARemedy() {
    let result = ConfigurationCheck(path: nil, places: ["/no/such/file"]).run()
    #expect(result.findings.first?.level == .fault)
    #expect(result.findings.first?.remedy?.contains("microbit-gateway init") == true)
    #expect(!result.isUnreadable)
  }

  @Test func missingNamedFileIsUnreadable() {
    let result = ConfigurationCheck(path: "/no/such/file").run()
    #expect(result.isUnreadable)
    #expect(result.findings.first?.level == .fault)
  }
}
