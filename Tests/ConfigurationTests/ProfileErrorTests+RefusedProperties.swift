/// What is understood of a property, and impossible in it.
extension ProfileErrorTests {
  static let refusedProperties: [(String, String, String)] = [
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
      property(#""access":["read"],"type":"uint8","flags":{"0":"x"},"repeat":true"#), "a.repeat",
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
  ]
}
