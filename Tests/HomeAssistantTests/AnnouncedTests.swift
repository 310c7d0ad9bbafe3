import JSON
import Testing

@testable import HomeAssistant

@Suite struct AnnouncedTests {
  func announced(_ text: String) throws -> Announced? {
    Announced(try JSONParser.parse(Array(text.utf8)))
  }

  @Test func isWrittenAndReadBack() throws {
    let announced = Announced(
      prefix: "homeassistant",
      components: Platform.allCases.map { Announced.Component(key: "a_\($0.rawValue)", platform: $0) })
    try expect(
      announced.json,
      """
      { "prefix": "homeassistant", "components": {
          "a_binary_sensor": "binary_sensor", "a_button": "button", "a_device_automation": "device_automation",
          "a_event": "event", "a_image": "image", "a_notify": "notify", "a_number": "number",
          "a_select": "select", "a_sensor": "sensor", "a_switch": "switch", "a_text": "text" } }
      """)
    #expect(Announced(announced.json) == announced)
    let nothing = Announced(prefix: "é", components: [])
    #expect(Announced(nothing.json) == nothing)
  }

  /// A key whose platform has changed, until Home Assistant has certainly removed the earlier entity.
  @Test func severalPlatformsOfAKeyAreWrittenAndReadBack() throws {
    let announced = Announced(
      prefix: "ha",
      components: [
        Announced.Component(key: "period", platform: .select),
        Announced.Component(key: "period", platform: .number),
      ])
    try expect(announced.json, #"{ "prefix": "ha", "components": { "period": ["number", "select"] } }"#)
    #expect(Announced(announced.json) == announced)
    let read = try self.announced(
      #"{"prefix":"ha","components":{"a":["select","teapot","select",1],"b":[],"c":[["sensor"]]}}"#)
    #expect(read?.components == [Announced.Component(key: "a", platform: .select)])
  }

  @Test(arguments: [
    "null", "[]", #""x""#, "{}", #"{"prefix":"ha"}"#, #"{"components":{}}"#,
    #"{"prefix":1,"components":{}}"#,
    #"{"prefix":"ha","components":[]}"#, #"{"prefix":"","components":{}}"#,
    #"{"prefix":"a/#","components":{}}"#, #"{"prefix":"a\u0000","components":{}}"#,
  ])
  func malformedJSONIsRejected(text: String) throws {
    #expect(try announced(text) == nil)
  }

  /// A later version may have stored other kinds of entities, and a damaged record can contain anything.
  @Test func componentsOfUnknownKindsAreIgnored() throws {
    let read = try announced(
      #"{"prefix":"ha","components":{"a":"sensor","b":"teapot","c/d":"sensor","":"sensor","e":1}}"#)
    #expect(
      read == Announced(prefix: "ha", components: [Announced.Component(key: "a", platform: .sensor)]))
  }

  @Test func numberOfComponentsIsLimited() throws {
    let many = (0..<5000).map { "\"k\($0)\":\"sensor\"" }.joined(separator: ",")
    #expect(try announced(#"{"prefix":"ha","components":{\#(many)}}"#)?.components.count == 2048)
  }
}
