import Testing

/// Errors in a profile are reported at their position.
@Suite struct ProfileErrorTests {
  /// A property `a` with these keys besides its UUIDs.
  static func property(_ keys: String) -> String {
    #""a":{"service":"1111","characteristic":"2222",\#(keys)}"#
  }

  @Test(arguments: malformedProperties + refusedProperties)
  func invalidPropertyIsReported(text: String, place: String, problem: String) throws {
    let errors = ProfileTests.errors(#"{"profiles":{"x":{"properties":{\#(text)}}}}"#)
    try #require(errors.count == 1, "\(errors)")
    #expect(errors[0].contains(" profiles.x.properties.\(place): \(problem)"), "\(errors[0])")
  }

  @Test(arguments: [("int24", "sint24"), ("sint16", "int16"), ("unit16", "uint16"), ("sint8", "int8")])
  func theNearestTypeIsNamed(text: String, nearest: String) throws {
    for keys in [#""type":"\#(text)""#, #""fields":[{"name":"x","type":"\#(text)"}]"#] {
      let property = Self.property(#""access":["read"],"# + keys)
      let errors = ProfileTests.errors(#"{"profiles":{"x":{"properties":{\#(property)}}}}"#)
      try #require(errors.count == 1, "\(errors)")
      #expect(errors[0].hasSuffix(#", found "\#(text)" (did you mean \#(nearest)?)"#), "\(errors[0])")
    }
  }

  private static let pair =
    #""a":{"service":"1111","characteristic":"2222","access":["notify"],"type":"uint8"},"#
    + #""b":{"service":"1111","characteristic":"2223","access":["write"],"type":"uint8"}"#

  private static let mistakes: [(String, String)] = [
    (#"{"x":{}}"#, "1:18: profiles.x.properties: this is missing"),
    (#"{"x":{"properties":{}}}"#, "1:32: profiles.x.properties: there is no property"),
    (
      #"{"X":{"properties":{\#(pair)}}}"#,
      "1:14: profiles.X: not a valid name (allowed are a-z, 0-9, - and _)"
    ),
    (
      #"{"microbit":{"properties":{\#(pair)}}}"#,
      "1:14: profiles.microbit: the profile microbit is built in (choose another name)"
    ),
    (
      #"{"x":{"values":{"property":"c"},"properties":{\#(pair)}}}"#,
      "1:40: profiles.x.values.property: there is no property c (did you mean a?)"
    ),
    (
      #"{"x":{"values":{"property":"a"},"properties":{\#(pair)}}}"#,
      "1:40: profiles.x.values.property: a must be an event, a text with a frame, that is notified (property) or "
        + "written (set)"
    ),
    (#"{"x":{"alive":{},"properties":{\#(pair)}}}"#, "1:27: profiles.x.alive.property: this is missing"),
    (
      #"{"x":{"alive":{"property":"heart"},"properties":{\#(pair)}}}"#,
      "1:39: profiles.x.alive.property: there is no property heart (there are a, b)"
    ),
    (
      #"{"x":{"alive":{"property":"b"},"properties":{\#(pair)}}}"#,
      #"1:39: profiles.x.alive.property: b does not come by itself: its access needs "notify", or it "poll""#
    ),
    (
      #"{"x":{"alive":{"property":"a","period":"b"},"properties":{\#(pair)}}}"#,
      "1:52: profiles.x.alive.period: b must be a state that can be read, and a number (of ms)"
    ),
  ]

  @Test(arguments: mistakes)
  func invalidProfileIsReported(profiles: String, expected: String) {
    #expect(ProfileTests.errors(#"{"profiles":\#(profiles)}"#) == [expected])
  }

  @Test func conflictingPropertiesAreRefused() {
    func errors(_ second: String) -> [String] {
      ProfileTests.errors(
        #"""
        {"profiles":{"x":{"properties":{
          "a":{"service":"1111","characteristic":"2222","access":["notify"],"type":"uint8"},
          \#(second)}}}}
        """#)
    }
    #expect(
      errors(#""a":{"service":"1111","characteristic":"2223","access":["notify"],"type":"uint8"}"#)
        == [#"3:3: duplicate key "a""#])
    #expect(
      errors(#""b":{"service":"1111","characteristic":"2222","access":["read"],"type":"uint8"}"#)
        == [
          "3:42: profiles.x.properties.b.characteristic: a and b are the same characteristic: "
            + "make one property of them, with several entities"
        ])
    let entity = #""home_assistant":{"platform":"sensor","name":"x"}"#
    #expect(
      ProfileTests.errors(
        #"""
        {"profiles":{"x":{"properties":{
          "a":{"service":"1111","characteristic":"2222","access":["notify"],"fields":[{"name":"b","type":"uint8"}],\#(entity)},
          "a_b":{"service":"1111","characteristic":"2223","access":["notify"],"type":"uint8",
            \#(entity)}}}}}
        """#) == [
          "4:22: profiles.x.properties.a_b.home_assistant: two entities of Home Assistant would be named a_b"
        ])
  }

  @Test func eachInvalidPropertyIsReported() {
    let errors = ProfileTests.errors(
      #"""
      {
        "devices": [{"profile": "y"}],
        "profiles": {
          "x": { "properties": {
            "a": { "service": "1111", "characteristic": "2222", "access": ["read"], "type": "uint8", "scale": 0 },
            "info": { "service": "1111", "characteristic": "2223", "access": ["read"], "type": "uint8" } } },
          "y": { "properties": {
            "b": { "service": "1111", "characteristic": "2222", "access": ["write"],
                   "kind": "event", "type": "utf8", "max_length": 20,
                   "initial": "x" } } } }
      }
      """#)
    #expect(
      errors == [
        "5:105: profiles.x.properties.a.scale: 0.0 is not a usable scale",
        "6:7: profiles.x.properties.info: the name is reserved (availability, info, readings, set, get, result, "
          + "image, connectivity, rssi, firmware, model, reconnect, enabled, identify, auto, values, log)",
        "10:25: profiles.y.properties.b.initial: an event has no initial: it is over as soon as it has happened "
          + "(a state has one)",
      ])
  }
}
