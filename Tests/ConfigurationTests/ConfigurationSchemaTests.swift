import JSON
import TestSupport
import Testing

@testable import Configuration

/// The shipped configuration and schema match the parser.
@Suite struct ConfigurationSchemaTests {
  @Test func theShippedConfigurationIsTheDefault() throws {
    let bytes = try shipped("config.json")
    #expect(try Configuration.parse(bytes).get() == Configuration())
    // Every key that has a default is shown with it.
    let document = try #require(JSONParser.parse(bytes).object)
    let defaults = try #require(Configuration().json.object)
    #expect(document.names == ["$schema"] + defaults.names)
    for member in defaults.members {
      // With this key the gateway would not be open for set-up in a browser.
      let undecided: JSONValue = member.name == "http" ? ["enabled": .bool(false)] : [:]
      let shown = document[member.name].map { $0.object == nil ? $0 : undecided.merging($0) }
      #expect(shown == member.value, "\(member.name)")
    }
    #expect(try !Configuration.parse(bytes).get().isSetUp(.object(document)))
    #expect(document["$schema"] == .string("deploy/config.schema.json"))
  }

  @Test func schemaMatchesTheParser() throws {
    let schema = try JSONParser.parse(shipped("deploy/config.schema.json"))
    #expect(schema["$schema"] == .string("https://json-schema.org/draft/2020-12/schema"))
    let found = try differences(schema)
    #expect(found == [])
  }

  /// A comparison that missed differences would let the test above always pass.
  @Test(arguments: [
    (#""maximum": 65535"#, #""maximum": 65536"#), (#""default": ["hci0"]"#, #""default": ["hci1"]"#),
    (#""base_topic": {"#, #""basetopic": {"#), (#""enum": ["5", "3.1.1"]"#, #""enum": ["5"]"#),
    (#""type": "boolean""#, #""type": "string""#),
    (#""additionalProperties": false"#, #""additionalProperties": true"#),
    (#""maxLength": 128"#, #""maxLength": 127"#), (#""pattern": "^hci[0-9]+$""#, #""title": "x""#),
    (#""description": "This gateway.""#, #""title": "x""#),
    (#""required": ["properties"]"#, #""required": []"#), (#""type": "number""#, #""type": "integer""#),
    (#""minimum": 0.1"#, #""minimum": 0.2"#), (#""minItems": 2"#, #""minItems": 1"#),
    (#""type": ["string", "array"]"#, #""type": "string""#),
    (#""propertyNames": { "pattern": "^[a-z][a-z0-9_]{0,63}$" }"#, #""propertyNames": {}"#),
  ])
  func comparisonFindsDifferences(text: String, replacement: String) throws {
    let original = String(decoding: try shipped("deploy/config.schema.json"), as: UTF8.self)
    let changed = original.replacing(text, with: replacement, maxReplacements: 1)
    try #require(changed != original)
    let schema = try JSONParser.parse(Array(changed.utf8))
    #expect(try !differences(schema).isEmpty)
  }

  private func differences(_ schema: JSONValue) throws -> [String] {
    var differences: [String] = []
    compare(schema, ConfigurationRule<Configuration>.section.shape, "", &differences)
    return try differences + SchemaPattern.differences(schema) + SchemaCounts.differences(schema)
  }

  /// The definition that `$ref` refers to.
  private static let entity: JSONValue = {
    guard let schema = try? shipped("deploy/config.schema.json"), let document = try? JSONParser.parse(schema)
    else { return .null }
    return document["$defs"]?.object?["entity"] ?? .null
  }()

  private func compareText(
    _ schema: JSONValue, _ shape: ConfigurationShape, _ path: String, _ differences: inout [String]
  ) {
    guard case .text(let lengths) = shape else {
      return differences.append("\(path): only texts can be one or more")
    }
    for (keyword, expected) in [
      ("minLength", JSONValue.integer(lengths.lowerBound)), ("maxLength", .integer(lengths.upperBound)),
    ] where schema[keyword] != expected { differences.append("\(path): \(keyword)") }
  }

  private func compare(
    _ schema: JSONValue, _ shape: ConfigurationShape, _ path: String, _ differences: inout [String]
  ) {
    func check(_ keyword: String, _ expected: JSONValue?) {
      if schema[keyword] != expected { differences.append("\(path): \(keyword)") }
    }
    func checkHasNoBounds() {
      if SchemaCounts.paths.contains(path) { return }
      check("minItems", nil)
      check("maxItems", nil)
    }
    switch shape {
    case .bool:
      check("type", .string("boolean"))
    case .integer(let range):
      check("type", .string("integer"))
      check("minimum", .integer(range.lowerBound))
      check("maximum", .integer(range.upperBound))
    case .integerOrText(let range):
      check("type", .array([.string("integer"), .string("string")]))
      check("minimum", .integer(range.lowerBound))
      check("maximum", .integer(range.upperBound))
    case .number(let range):
      check("type", .string("number"))
      check("minimum", range.map { JSONValue(number: $0.lowerBound) })
      check("maximum", range.map { JSONValue(number: $0.upperBound) })
    case .numberRange:
      check("type", .string("array"))
      check("items", ["type": "number"])
      check("minItems", .integer(2))
      check("maxItems", .integer(2))
    case .pair(let range):
      check("type", .string("array"))
      check("minItems", .integer(2))
      check("maxItems", .integer(2))
      compare(schema["items"] ?? .null, .integer(range), "\(path)[]", &differences)
    case .text:
      check("type", .string("string"))
      compareText(schema, shape, path, &differences)
    case .choice(let words):
      check("enum", .array(words))
    case .list(let element):
      check("type", .string("array"))
      checkHasNoBounds()
      compare(schema["items"] ?? .null, element, "\(path)[]", &differences)
    case .oneOrMore(.object(let members)):
      let entity: JSONValue = ["$ref": "#/$defs/entity"]
      check("anyOf", [entity, ["type": "array", "items": entity]])
      compare(Self.entity, .object(members), path, &differences)
    case .oneOrMore(.integer(let range)):
      check("type", ["integer", "array"])
      check("minimum", .integer(range.lowerBound))
      check("maximum", .integer(range.upperBound))
      compare(schema["items"] ?? .null, .integer(range), "\(path)[]", &differences)
    case .oneOrMore(let element):
      check("type", ["string", "array"])
      checkHasNoBounds()
      compareText(schema, element, path, &differences)
      compare(schema["items"] ?? .null, element, "\(path)[]", &differences)
    case .falseOr(.members(let element)):
      check("type", ["boolean", "object"])
      check("not", ["const": .bool(true)])
      compare(schema["additionalProperties"] ?? .null, element, "\(path).*", &differences)
    case .nullOr(.integer(let range)):
      check("type", ["integer", "null"])
      check("minimum", .integer(range.lowerBound))
      check("maximum", .integer(range.upperBound))
    case .nullOr: differences.append("\(path): only whole numbers can be null")
    case .falseOr: differences.append("\(path): only objects of names can be false")
    case .members(let element):
      check("type", .string("object"))
      compare(schema["additionalProperties"] ?? .null, element, "\(path).*", &differences)
    case .any:
      check("type", nil)
    case .object(let members):
      check("type", .string("object"))
      check("additionalProperties", .bool(false))
      let required = members.filter(\.isRequired).map { JSONValue.string($0.name) }
      check("required", required.isEmpty ? nil : .array(required))
      guard let properties = schema["properties"]?.object else {
        return differences.append("\(path): properties")
      }
      if properties.names != members.map(\.name) { differences.append("\(path): names") }
      for member in members {
        let property = properties[member.name] ?? .null
        let path = "\(path).\(member.name)"
        if property["default"] != member.default { differences.append("\(path): default") }
        if property["description"] == nil { differences.append("\(path): description") }
        compare(property, member.shape, path, &differences)
      }
    }
  }
}

extension JSONValue {
  fileprivate var object: JSONObject? {
    if case .object(let object) = self { object } else { nil }
  }
}
