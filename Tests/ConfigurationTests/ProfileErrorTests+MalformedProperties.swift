/// Keys and values of a property that are not understood.
extension ProfileErrorTests {
  private static let longPrefix =
    #""a":{"source":{"service_data":"feaa","prefix":"\#(String(repeating: "0", count: 1026))"},"type":"uint8"}"#

  static let malformedProperties: [(String, String, String)] = [
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
  ]
}
