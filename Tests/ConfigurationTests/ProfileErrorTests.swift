import Testing

/// Errors in a profile are reported at their position.
@Suite struct ProfileErrorTests {
  private static let longPrefix =
    #""a":{"source":{"service_data":"feaa","prefix":"\#(String(repeating: "0", count: 1026))"},"type":"uint8"}"#

  /// A property `a` with these keys besides its UUIDs.
  private static func property(_ keys: String) -> String {
    #""a":{"service":"1111","characteristic":"2222",\#(keys)}"#
  }

  @Test(arguments: [
    // Names.
    (
      #""info":{"service":"1111","characteristic":"2222","access":["read"],"type":"uint8"}"#, "info",
      "the name is reserved"
    ),
    (
      #""A":{"service":"1111","characteristic":"2222","access":["read"],"type":"uint8"}"#, "A",
      "the name is not made of a-z"
    ),
    // Values in advertisements.
    (#""a":{"source":{"service_data":"feaa"}}"#, "a.type", "this is missing"),
    (#""a":{"source":{},"type":"uint8"}"#, "a.source", "needs either service_data or manufacturer_data"),
    (
      #""a":{"source":{"service_data":"feaa","manufacturer_data":1},"type":"uint8"}"#, "a.source",
      "needs either service_data or manufacturer_data"
    ),
    (
      #""a":{"source":{"manufacturer_data":70000},"type":"uint8"}"#, "a.source.manufacturer_data",
      "70000 is above 65535"
    ),
    (
      #""a":{"source":{"service_data":"feaa","prefix":"1"},"type":"uint8"}"#, "a.source.prefix",
      "\"1\" is not hexadecimal (two digits make a byte: 05, 0a1f)"
    ),
    (Self.longPrefix, "a.source.prefix", "must not be longer than 1024 characters"),
    // Data that is too short for the value, and too long for one without a place.
    (
      #""a":{"source":{"manufacturer_data":1,"length":3,"at":2},"type":"uint16"}"#, "a.source.length",
      "no value fits: it begins at byte 2, and has 2 bytes (it is that of all the data: at least 4)"
    ),
    (
      #""a":{"source":{"manufacturer_data":1,"length":5,"prefix":"01"},"type":"uint16"}"#, "a.source.length",
      #"no value fits: it begins at byte 1, and has 2 bytes (make it 3, or give "at": 1)"#
    ),
    (
      #""a":{"source":{"manufacturer_data":1,"length":2},"fields":[{"name":"x","type":"uint8"}]}"#,
      "a.source.length", "no value fits: it begins at byte 0, and cannot have 2 bytes"
    ),
    (
      #""a":{"source":{"service_data":"feaa"},"access":["read"],"type":"uint8"}"#, "a.access",
      "a property with a source has no access"
    ),
    (
      #""a":{"source":{"service_data":"fcd2"},"format":"bthome_temperature","type":"uint8"}"#, "a.type",
      "type and this source must not be combined"
    ),
    (
      #""a":{"source":{"service_data":"feaa"},"format":"eddystone_url","instance":1}"#, "a.instance",
      "instance and this source must not be combined"
    ),
    (
      property(#""access":["read"],"format":"eddystone_uid""#), "a.format",
      "only what is advertised has a format"
    ),
    (
      #""b":{"source":{"service_data":"feaa"},"type":"uint8"},"#
        + property(#""access":["read"],"type":"uint8""#),
      "a", "either all properties have a source, or none"
    ),
    // Keys that are missing, unknown, or of the wrong type.
    (#""a":{"characteristic":"2222","access":["read"],"type":"uint8"}"#, "a.service", "this is missing"),
    (#""a":{"service":"1111","access":["read"],"type":"uint8"}"#, "a.characteristic", "this is missing"),
    (#""a":{"service":"1111","characteristic":"2222","type":"uint8"}"#, "a.access", "this is missing"),
    (property(#""access":["read"]"#), "a.type", "this is missing (give type or fields)"),
    (
      property(#""access":["read"],"typ":"uint8","type":"uint8""#), "a.typ",
      "unknown key (did you mean type?)"
    ),
    (property(#""access":["read"],"type":"uint9""#), "a.type", #"expected "uint8" or "uint16""#),
    (
      property(#""access":["red"],"type":"uint8""#), "a.access[0]",
      #"expected "read" or "notify" or "write", found "red""#
    ),
    // Bits.
    (
      property(#""access":["read"],"type":"uint8","bits":[0,9]"#), "a.bits",
      "there are no bits 0 to 8: the bits are 0 to 7, and the second number is how many there are"
    ),
    (
      property(#""access":["read"],"type":"uint8","bits":[0,-1]"#), "a.bits",
      "expected a list of two whole numbers, 0…64 (example: [0, 7], the lowest bit and how many there are)"
    ),
    (
      property(#""access":["read"],"type":"uint8","bits":7"#), "a.bits",
      "expected a list of two whole numbers"
    ),
    (
      property(#""access":["read"],"type":"uint8","bits":[0,1e300]"#), "a.bits",
      "expected a list of two whole numbers"
    ),
    (
      property(#""access":["read"],"type":"uint8","bits":[64,64]"#), "a.bits",
      "there are no bits 64 to 127: the bits are 0 to 7"
    ),
    (
      property(#""access":["read"],"type":"uint8","bit":1"#), "a.bit",
      #"only a bool is one bit (give a number "bits": [lowest, count])"#
    ),
    (
      property(#""access":["read"],"type":"bool","bits":[0,1]"#), "a.bits",
      #"a bool is one bit (give it "bit")"#
    ),
    (
      property(#""access":["read"],"type":"bool","bit":8"#), "a.bit", "there is no bit 8: the bits are 0 to 7"
    ),
    (property(#""access":["read"],"type":"bool","bit":64"#), "a.bit", "64 is above 63"),
    (
      property(#""access":["read"],"type":"int8","bits":[0,4]"#), "a.bits",
      "only unsigned integers have bits, not int8"
    ),
    (
      property(#""access":["read","write"],"type":"bool","bit":1"#), "a.bit",
      #"a write would clear the other bits: leave "write" out of access"#
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"bool","bit":1,"of":"y"}]"#),
      "a.fields[0].of",
      "there is no hidden field y before this one that is an integer"
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"int8","bit":1}]"#), "a.fields[0].bit",
      "only a bool is one bit"
    ),
    // Numbers as text.
    (
      property(#""access":["read"],"type":"decimal","scale":0"#), "a.scale", "0.0 is not a usable scale"
    ),
    (
      property(#""access":["read","write"],"type":"decimal","range":[0,1e300]"#), "a.range",
      "the range 0.0…1e+300 is more than the type holds"
    ),
    // Words that are expected elsewhere.
    (
      property(#""access":["indicate"],"type":"uint8""#), "a.access[0]",
      #"expected "read" or "notify" or "write", found "indicate" ("notify" includes indications)"#
    ),
    (
      #""a":{"source":{"manufacturer_data":"0499"},"type":"uint8"}"#, "a.source.manufacturer_data",
      #""0499" is not the number of a company (examples: 1177, "0x0499")"#
    ),
    (property(#""access":[],"type":"uint8""#), "a.access", "access is empty"),
    (
      property(#""access":["read"],"type":"uint8","scale":"2""#), "a.scale",
      "expected a number, found a string (write it without quotes)"
    ),
    (property(#""access":["read"],"type":"uint8","poll":0"#), "a.poll", "0 is below 0.1"),
    (
      property(#""access":["read"],"type":"uint8","report":{"change":-1}"#), "a.report.change",
      "-1 is below 0"
    ),
    (property(#""access":["read"],"type":"uint8","values":{"x":"y"}"#), "a.values.x", "not a whole number"),
    (property(#""access":["read"],"type":"uint8","values":{"01":"y"}"#), "a.values.01", "not a whole number"),
    (
      property(#""access":["read"],"type":"uint8","home_assistant":{"name":"A"}"#),
      "a.home_assistant.platform", "this is missing"
    ),
    (
      property(
        #""access":["read"],"type":"uint8","home_assistant":{"platform":"sensor","name":"A","mode":"box"}"#),
      "a.home_assistant.mode", "only the platform number has this key"
    ),
    (
      property(
        #""access":["write"],"type":"uint16","home_assistant":{"platform":"select","name":"A","options":{"5 s":"5000"}}"#
      ),
      "a.home_assistant.options.\"5 s\"", "expected a whole number in plain digits, found a string"
    ),
    (
      property(
        #""access":["write"],"type":"bytes","home_assistant":{"platform":"switch","name":"A","on":"7E 04","off":"00"}"#
      ),
      "a.home_assistant.on", #"expected bytes in hexadecimal digits without blanks, found "7E 04""#
    ),
    (
      #""a":{"source":{"service_data":"181a"},"at":2,"type":"uint8"}"#, "a.at",
      #"unknown key (put it into source: {"source": {"at": …}})"#
    ),
    (
      property(
        #""access":["write"],"type":"uint8","home_assistant":{"platform":"select","name":"A","options":{"":5}}"#
      ),
      "a.home_assistant.options.\"\"", "must have 1 to 64 characters"
    ),
    (
      property(
        #""access":["write"],"type":"bool","home_assistant":[{"platform":"switch","name":"A"},{"platform":"switch","key":"b","name":"A","on":1}]"#
      ),
      "a.home_assistant[1].on", "expected true or false, found a number"
    ),
    (
      property(
        #""access":["read"],"fields":[{"name":"x","type":"uint8"}],"home_assistant":{"platform":"sensor","field":"y","name":"A"}"#
      ),
      "a.home_assistant.field", "there is no field \"y\" (did you mean x?)"
    ),
    (
      property(
        #""access":["read"],"type":"uint8","home_assistant":{"platform":"sensor","field":"y","name":"A"}"#),
      "a.home_assistant.field", "there is no field \"y\" (only a record has fields)"
    ),
    (
      property(
        #""access":["write"],"type":"uint8","home_assistant":{"platform":"number","field":"y","name":"A"}"#),
      "a.home_assistant.field", "only a sensor and a binary_sensor show one field"
    ),
    (
      property(
        #""access":["read"],"fields":[{"name":"x","type":"uint8","repeat":true}],"home_assistant":{"platform":"sensor","field":"x","name":"A"}"#
      ),
      "a.home_assistant", "needs a value or field that is no list"
    ),
    (
      property(
        #""access":["read"],"type":"uint8","values":{"0":"off"},"home_assistant":{"platform":"sensor","name":"A","state_class":"measurement"}"#
      ),
      "a.home_assistant.state_class", "only a number has a state_class (remove it)"
    ),
    (
      property(
        #""access":["read"],"fields":[{"name":"x","type":"utf8"}],"home_assistant":{"platform":"sensor","field":"x","name":"A","unit":"V"}"#
      ),
      "a.home_assistant.unit", "only a number has a unit (remove it)"
    ),
    // Refused by the codec.
    (
      property(#""access":["read"],"type":"uint8","unknown":[255,256]"#), "a.unknown",
      "256 does not fit into uint8"
    ),
    (
      property(#""access":["read"],"type":"utf8","unknown":0"#), "a.unknown",
      "only numbers have unknown"
    ),
    (property(#""access":["read"],"type":"bool","valid":[0,1]"#), "a.valid", "only numbers have valid"),
    (property(#""access":["read"],"type":"uint8","valid":[2,1]"#), "a.valid", "expected"),
    (property(#""access":["read"],"type":"uint8","unknown":"x""#), "a.unknown", "expected"),
    (property(#""access":["read"],"type":"uint8","scale":0"#), "a.scale", "0.0 is not a usable scale"),
    (
      property(#""access":["read"],"type":"utf8","scale":2"#), "a.scale",
      "only numbers have scale"
    ),
    (
      property(#""access":["read"],"type":"utf8","repeat":true"#), "a.repeat",
      "only values of a fixed size can be repeated"
    ),
    (
      property(#""access":["read"],"type":"uint8","values":{"256":"x"}"#), "a.values",
      "256 does not fit into uint8"
    ),
    (
      property(#""access":["read"],"type":"uint8","values":{"0":"x","1":"x"}"#), "a.values",
      #""x" stands for two numbers"#
    ),
    (
      property(#""access":["read"],"type":"uint8","fields":[{"name":"x","type":"uint8"}]"#), "a.fields",
      "type and fields must not be combined"
    ),
    (
      property(#""access":["read"],"scale":2,"fields":[{"name":"x","type":"uint8"}]"#), "a.scale",
      "a property with fields has no scale"
    ),
    (property(#""access":["read"],"fields":[]"#), "a.fields", "there is no field that is not hidden"),
    (property(#""access":["read"],"fields":[{"type":"uint8"}]"#), "a.fields[0].name", "this is missing"),
    (property(#""access":["read"],"fields":[{"name":"x"}]"#), "a.fields[0].type", "this is missing"),
    (
      property(#""access":["read"],"fields":[{"name":"X","type":"uint8"}]"#), "a.fields[0].name",
      #""X" is not a name"#
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"uint8"},{"name":"x","type":"uint8"}]"#),
      "a.fields[1].name", "there is another x"
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"utf8"},{"name":"y","type":"uint8"}]"#),
      "a.fields[1].name", "x before it takes all the bytes"
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"uint8","if":"f.0"}]"#), "a.fields[0].if",
      "f.0: there is no field f"
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"uint8","unless":"f.0"}]"#),
      "a.fields[0].unless", "f.0: there is no field f"
    ),
    (
      property(
        #""access":["read"],"fields":[{"name":"x","type":"uint8"},{"name":"y","type":"uint8","if":"x.8"}]"#),
      "a.fields[1].if", "x.8: x has the bits 0 to 7"
    ),
    (
      property(
        #""access":["read"],"fields":[{"name":"x","type":"uint8"},{"name":"y","type":"uint8","if":"x.0","unless":"x.0"}]"#
      ), "a.fields[1].unless", "x.0 cannot be both"
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"uint8","if":"x"}]"#), "a.fields[0].if",
      #""x" is not a bit of a field"#
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"uint8","if":"f\u00AD.0"}]"#),
      "a.fields[0].if", #""f·.0" is not a bit of a field"#
    ),
    (
      property(#""access":["read"],"fields":[{"name":"x","type":"uint8","if":["f.0",1]}]"#),
      "a.fields[0].if[1]", "expected a string"
    ),
    // Refused by the property.
    (property(#""access":["read"],"kind":"event","type":"uint8""#), "a.access", "an event is not read"),
    (
      property(#""access":["notify"],"kind":"event","poll":1,"type":"uint8""#), "a.poll",
      "an event has no poll"
    ),
    (
      property(#""access":["write"],"write":"confirm","type":"uint8""#), "a.write",
      #""confirm" reads the value back"#
    ),
    (
      property(#""access":["read"],"write":"request","type":"uint8""#), "a.write",
      #"write needs "write" in access"#
    ),
    (
      property(#""access":["read"],"range":[0,1],"type":"uint8""#), "a.range",
      #"range needs "write" in access"#
    ),
    (
      property(#""access":["write"],"range":[0,256],"type":"uint8""#), "a.range",
      "the range 0.0…256.0 is more than the type holds"
    ),
    (
      property(#""access":["write"],"range":[2,1],"type":"uint8""#), "a.range",
      "expected a list of two numbers, the smaller first"
    ),
    (
      property(#""access":["write"],"max_length":3,"type":"uint8""#), "a.max_length",
      "only text, bytes and lists have a length"
    ),
    (property(#""access":["notify"],"poll":1,"type":"uint8""#), "a.poll", #"poll needs "read" in access"#),
    (
      property(#""access":["read","write"],"initial":256,"type":"uint8""#), "a.initial",
      "not a valid initial value: 256 is outside 0…255"
    ),
    (
      property(#""access":["read","write"],"initial":null,"type":"uint8""#), "a.initial",
      "expected a whole number in plain digits, found null"
    ),
    (
      property(#""access":["read"],"type":"uint8","home_assistant":{"platform":"event","name":"A"}"#),
      "a.home_assistant",
      "needs an event that notifies"
    ),
  ])
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
