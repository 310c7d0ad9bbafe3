import JSON

@testable import Configuration

/// A regular expression of the schema, which editors use: what the rule takes fits it, and what does not fit is refused.
struct SchemaPattern {
  /// Where the schema has it: `[]` are the elements of a list, `{}` the names in an object, `*` its values.
  let paths: [String]
  /// A configuration, with `%` in the place of the text.
  let document: String
  let taken: [String]
  let refused: [String]

  private static let property = "profiles.*.properties.*"

  private static func profile(_ keys: String, name: String = "a") -> String {
    #"{"profiles":{"p":{"properties":{"\#(name)":{"service":"180d","characteristic":"2a37","access":["read","write"],"#
      + keys + "}}}}}"
  }

  private static func entry(_ keys: String) -> String { #"{"devices":[{\#(keys)}]}"# }

  /// A pattern that stands at several places.
  private static func everywhere(
    _ documents: KeyValuePairs<String, String>, taken: [String], refused: [String]
  ) -> [SchemaPattern] {
    documents.map { SchemaPattern(paths: [$0.key], document: $0.value, taken: taken, refused: refused) }
  }

  private static let gatewayIDs = everywhere(
    ["gateway.id": #"{"gateway":{"id":"%"}}"#, "devices[].gateway": entry(#""gateway":"%""#)],
    taken: ["house-1", "a_b", "0"], refused: ["House", "a b", "küche", "온도"])

  private static let adapters = everywhere(
    [
      "bluetooth.adapter": #"{"bluetooth":{"adapter":"%"}}"#,
      "bluetooth.adapters[]": #"{"bluetooth":{"adapters":["%"]}}"#,
      "devices[].adapter":
        #"{"bluetooth":{"adapters":["hci0","hci12"]},"devices":[{"adapter":"%"}]}"#,
    ], taken: ["hci0", "hci12"], refused: ["hci", "hci-1", "eth0", "hci0 "])

  private static let topics = everywhere(
    [
      "mqtt.base_topic": #"{"mqtt":{"base_topic":"%"}}"#,
      "home_assistant.prefix": #"{"home_assistant":{"prefix":"%"}}"#,
    ],
    taken: ["microbits", "school/room 1"], refused: ["/a", "a/", "a//b", "a+b", "a/#", "$SYS/a"])

  static let all =
    gatewayIDs + adapters + topics + [
      SchemaPattern(
        paths: ["mqtt.host"], document: #"{"mqtt":{"host":"%"}}"#,
        taken: ["localhost", "192.168.1.5", "fd00::1", "fe80::1%eth0"],
        refused: ["mqtt://x", "a b", "localhost:1883", "[::1]"]),
      SchemaPattern(
        paths: ["mqtt.hosts[]"], document: #"{"mqtt":{"hosts":["x","%"]}}"#,
        taken: ["broker", "broker:8883", "[fd00::1]:1883", "fd00::1"],
        refused: ["mqtt://x", "a b", "a:b", "[::1]", ":1883"]),
      SchemaPattern(
        paths: ["http.address", "http.address[]"], document: #"{"http":{"address":"%"}}"#,
        taken: ["127.0.0.1", "::1"], refused: ["localhost", "127.0.0.1/8"]),
      SchemaPattern(
        paths: ["http.proxy"], document: #"{"http":{"proxy":"%"}}"#, taken: ["172.30.32.2"],
        refused: ["proxy", "::1"]),
      SchemaPattern(
        paths: ["devices[].match.identifier"], document: entry(#""match":{"identifier":"%"}"#),
        taken: [
          "C5:A1:B2:C3:D4:E5", "c5:a1:b2:c3:d4:e5", "radio:zotut", "radio:00c0ffee", "radio:usb_00C0FFEE",
        ], refused: ["C5:A1:B2:C3:D4", "C5A1B2C3D4E5", "radio:zotux", "usb_00c0ffee"]),
      SchemaPattern(
        paths: ["devices[].match.radio"], document: entry(#""match":{"radio":"%"}"#), taken: ["zotut"],
        refused: ["zotu", "zotux", "otuzo"]),
      SchemaPattern(
        paths: ["devices[].match.service", "profiles.*.requires[]", "\(property).source.service_data"]
          + ["service", "characteristic", "alternative"].map { "\(property).\($0)" },
        document: entry(#""match":{"service":"%"}"#),
        taken: ["180d", "0x180D", "0000180d", "0000180d-0000-1000-8000-00805f9b34fb"],
        refused: ["180", "180g", "180d-", "0000180d00001000800000805f9b34fb"]),
      SchemaPattern(
        paths: ["devices[].match.manufacturer", "\(property).source.manufacturer_data"],
        document: entry(#""match":{"manufacturer":"%"}"#), taken: ["0x0499", "0x4c"],
        refused: ["1177", "0x", "0x10000", "0x-1"]),
      SchemaPattern(
        paths: ["devices[].id"], document: entry(#""id":"%""#),
        taken: ["kueche", "온도", "θερμό", "þing", "table-1"],
        refused: ["küche", "Küche", "café", "a/b"] + DeviceID.reserved),
      SchemaPattern(
        paths: ["devices[].values{}"], document: entry(#""values":{"%":{}}"#),
        taken: ["temp", "co2_in", "온도"],
        refused: ["", "Temp", "a-b", "küche", String(repeating: "a", count: 33)]),
      SchemaPattern(
        paths: ["devices[].adjust{}", "devices[].desired{}", "profiles.*.properties{}"],
        document: profile(#""type":"uint8""#, name: "%"),
        taken: ["a", "heart_rate", String(repeating: "a", count: 64)],
        refused: ["", "A", "1a", "a-b", String(repeating: "a", count: 65)]),
      SchemaPattern(
        paths: ["devices[].key"], document: entry(#""profile":"bthome","key":"%""#),
        taken: ["00112233445566778899aabbccddEEFF"], refused: ["0011", String(repeating: "x", count: 32)]),
      SchemaPattern(
        paths: ["profiles{}"],
        document: profile(#""type":"uint8""#).replacing(#""p""#, with: #""%""#, maxReplacements: 1),
        taken: ["heart", "a-b_1"], refused: ["microbit", "bthome", "radio", "Heart", "a b", ""]),
      SchemaPattern(
        paths: ["values{}", "flags{}", "fields[].values{}"].map { "\(property).\($0)" },
        document: profile(#""type":"int8","values":{"%":"x"}"#), taken: ["0", "12", "-1"],
        refused: ["", "01", "+1", "-0", "1.0", "x"]),
      SchemaPattern(
        paths: ["if", "if[]", "unless", "unless[]"].map { "\(property).fields[].\($0)" },
        document: profile(
          #""fields":[{"name":"flags","type":"uint8","hidden":true},{"name":"b","type":"uint8","if":"%"}]"#),
        taken: ["flags.0", "flags.7"], refused: ["flags", "flags.", "flags.100", "Flags.0"]),
      SchemaPattern(
        paths: ["$defs.entity.options{}"],
        document: profile(
          #""type":"uint8","home_assistant":{"platform":"select","name":"N","options":{"%":1}}"#),
        taken: ["5 s"], refused: ["", String(repeating: "a", count: 65)]),
    ]

  /// What the schema has of patterns and this list has not, and texts that fit and are refused, or the other way round.
  static func differences(_ schema: JSONValue) throws -> [String] {
    let found = patterns(schema, "")
    var differences = Set(found.keys).symmetricDifference(all.flatMap(\.paths)).map { "\($0): pattern" }
    for pattern in all {
      for path in pattern.paths {
        guard let text = found[path] else { continue }
        let expression = try Regex(text)
        for sample in pattern.taken + pattern.refused {
          let fits = sample.firstMatch(of: expression) != nil
          if fits != pattern.taken.contains(sample) { differences.append("\(path): \(sample)") }
        }
      }
      for sample in pattern.taken + pattern.refused {
        let document = Array(pattern.document.replacing("%", with: sample, maxReplacements: 1).utf8)
        let isTaken = if case .success = Configuration.parse(document) { true } else { false }
        if isTaken != pattern.taken.contains(sample) { differences.append("\(pattern.paths[0]): \(sample)") }
      }
    }
    return differences
  }

  private static func patterns(_ schema: JSONValue, _ path: String) -> [String: String] {
    var all: [String: String] = [:]
    if let pattern = schema["pattern"]?.text { all[path] = pattern }
    let below = [("items", "[]"), ("additionalProperties", ".*"), ("propertyNames", "{}")]
    var parts = below.compactMap { key, step in schema[key].map { ($0, path + step) } }
    for key in ["properties", "$defs"] {
      guard case .object(let object) = schema[key] else { continue }
      let prefix = key == "$defs" ? "$defs." : path.isEmpty ? "" : "\(path)."
      parts += object.members.map { ($0.value, prefix + $0.name) }
    }
    for (part, path) in parts { all.merge(patterns(part, path)) { $1 } }
    return all
  }
}

/// A list of the schema: the rule takes as many elements as fit its bounds, and no fewer or more.
struct SchemaCounts {
  /// The section and the key.
  let path: (String, String)
  /// What its elements begin with; a number follows.
  let element: String

  private static let all = [
    SchemaCounts(path: ("bluetooth", "adapters"), element: "hci"),
    SchemaCounts(path: ("mqtt", "hosts"), element: "broker-"),
    SchemaCounts(path: ("http", "address"), element: "127.0.0."),
    SchemaCounts(path: ("radio", "ports"), element: "/dev/ttyACM"),
  ]

  static let paths = Set(all.map { ".\($0.path.0).\($0.path.1)" })

  /// The counts that fit and are refused, or the other way round.
  static func differences(_ schema: JSONValue) -> [String] {
    all.flatMap { list -> [String] in
      let (section, key) = list.path
      let bounds = schema["properties"]?[section]?["properties"]?[key]
      return (0...10).filter { count in
        let elements = JSONValue.array((0..<count).map { .string("\(list.element)\($0)") })
        let document: JSONValue = [section: [key: elements]]
        let isTaken = if case .success = Configuration.parse(document.bytes) { true } else { false }
        let fits =
          count >= bounds?["minItems"]?.integer ?? 0 && count <= bounds?["maxItems"]?.integer ?? .max
        return isTaken != fits
      }.map { "\(section).\(key): \($0) elements" }
    }
  }
}
