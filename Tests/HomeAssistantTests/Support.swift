import JSON
import Testing

@testable import HomeAssistant

// Access to discovery documents.

func object(_ document: DiscoveryDocument, _ key: String? = nil) throws -> JSONObject {
  let json = try JSONParser.parse(document.payload)
  guard case .object(let whole) = json else { throw NotAnObject() }
  guard let key else { return whole }
  guard case .object(let part) = whole[key] else { throw NotAnObject() }
  return part
}

private struct NotAnObject: Error {}

/// Expects the document, or its value at `key`, to be this, in this order.
func expect(
  _ document: DiscoveryDocument, at key: String? = nil, _ text: String,
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  try expect(.object(object(document, key)), text, sourceLocation: sourceLocation)
}

func expect(
  _ json: JSONValue?, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let expected = try JSONParser.parse(Array(text.utf8))
  guard json != expected else { return }
  // As text, so that the difference can be read.
  #expect(
    json.map { String(decoding: $0.bytes, as: UTF8.self) } == String(decoding: expected.bytes, as: UTF8.self),
    sourceLocation: sourceLocation)
}

func uniqueIDs(_ document: DiscoveryDocument) throws -> [JSONValue] {
  try object(document, "cmps").members.compactMap { member in
    guard case .object(let component) = member.value else { return nil }
    return component["uniq_id"]
  }
}
