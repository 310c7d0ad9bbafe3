import FoundationEssentials
import TestSupport
import Testing

@testable import JSON

@Suite struct JSONParserTests {
  func parse(_ text: String) throws -> JSONValue { try JSONParser.parse(Array(text.utf8)) }
  func error(_ bytes: [UInt8]) -> String? {
    do throws(JSONSyntaxError) {
      _ = try JSONParser.parse(bytes)
      return nil
    } catch {
      return error.description
    }
  }

  @Test func readsEveryKindOfValue() throws {
    let document = try parse(
      #" {"a": [null, true, false, -0, 12, 1.5, -2E3, 1e-2], "b": {"c": {}}, "d": [], "e": "x"} "#)
    let expected: JSONValue = [
      "a": [
        .null, .bool(true), .bool(false), .integer(0), .integer(12), .number(1.5), .number(-2000),
        .number(0.01),
      ],
      "b": ["c": [:]], "d": [], "e": .string("x"),
    ]
    #expect(document == expected)
  }

  @Test func integersAreExactAndLargerOnesAreNumbers() throws {
    #expect(try parse("9223372036854775807") == .integer(.max))
    #expect(try parse("-9223372036854775808") == .integer(.min))
    #expect(try parse("9223372036854775808") == .number(9_223_372_036_854_775_808))
    #expect(try parse("1.0") == .number(1))
  }

  @Test(arguments: [
    (#""a\"\\\/\b\f\n\r\tb""#, "a\"\\/\u{8}\u{C}\n\r\tb"), (#""\u00e9\u20AC""#, "é€"),
    (#""\ud83c\udf21""#, "🌡"), (#""\u0000""#, "\0"), (#""🌡""#, "🌡"), (#""""#, ""),
  ])
  func readsStrings(text: String, expected: String) throws {
    #expect(try parse(text) == .string(expected))
  }

  @Test(arguments: [
    ("", "line 1, column 1: the text is empty"),
    (" \n ", "line 2, column 2: the text is empty"),
    ("{", "line 1, column 2: expected a key in double quotes, found the end"),
    ("{\n  \"a\": 1,\n  \"b\" 2\n}", "line 3, column 7: expected a colon after the key, found \"2\""),
    ("{\"ä\": x}", "line 1, column 7: expected a value, found \"x\""),
    ("{\"a\": 1,}", "line 1, column 9: expected a key in double quotes, found \"}\""),
    ("{a: 1}", "line 1, column 2: expected a key in double quotes, found \"a\""),
    ("{\"a\": 1 \"b\": 2}", "line 1, column 9: expected a comma or }, found \"\"\""),
    ("{\"a\": 1", "line 1, column 8: expected a comma or }, found the end"),
    ("{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9: expected a comma or }, found the end of the line"),
    ("[\n  1 \n\n  {}\n]", "line 2, column 4: expected a comma or ], found the end of the line"),
    ("{\"a\": 1\n]", "line 2, column 1: expected a comma or }, found \"]\""),
    ("[1,]", "line 1, column 4: expected a value, found \"]\""),
    ("[1", "line 1, column 3: expected a comma or ], found the end"),
    ("{}\n// note", "line 2, column 1: expected the end, found \"/\""),
    ("1 2", "line 1, column 3: expected the end, found \"2\""),
    ("tru", "line 1, column 1: expected a value, found \"t\""),
    ("{\"a\": 1,\n \"a\": 2}", "line 2, column 2: duplicate key \"a\""),
    ("\"abc", "line 1, column 1: this string has no end"),
    ("\"abc\\", "line 1, column 5: unknown escape: write a backslash as \\\\"),
    ("\"a\nb\"", "line 1, column 3: a string cannot contain the end of the line: close it, or write \\n"),
    ("\"\\x\"", "line 1, column 2: unknown escape: write a backslash as \\\\"),
    ("\"\\ud83c\"", "line 1, column 2: this \\u names no character"),
    ("\"\\udf21\"", "line 1, column 2: this \\u names no character"),
    ("\"\\u+123\"", "line 1, column 2: this \\u names no character"),
    ("\"\\u12", "line 1, column 2: this \\u names no character"),
    ("01", "line 1, column 1: a number does not begin with 0"),
    ("-", "line 1, column 2: expected a digit, found the end"),
    ("1.", "line 1, column 3: expected a digit after the point, found the end"),
    ("1e", "line 1, column 3: expected a digit in the exponent, found the end"),
    ("1e+-2", "line 1, column 4: expected a digit in the exponent, found \"-\""),
    ("1e999", "line 1, column 1: this number is too large"),
    ("-0.01e-400", "line 1, column 1: this number is too small"),
    ("+1", "line 1, column 1: expected a value, found \"+\""),
    (".5", "line 1, column 1: expected a value, found \".\""),
    ("'a'", "line 1, column 1: expected a value, found \"'\""),
    ("\u{1}", "line 1, column 1: expected a value, found a control character"),
    ("\r\n\t🌡", "line 2, column 2: expected a value, found \"🌡\""),
  ])
  func errorsHaveAPositionAndAReason(text: String, expected: String) {
    #expect(error(Array(text.utf8)) == expected)
  }

  @Test(arguments: [
    ([0x7B, 0x0A, 0xFF], "line 2, column 1: this is not UTF-8"),
    ([0x22, 0xC3, 0xA4, 0xC3, 0x22], "line 1, column 3: this is not UTF-8"),
    ([0x22, 0xED, 0xA0, 0x80, 0x22], "line 1, column 2: this is not UTF-8"),
    ([0x22, 0xC0, 0x80, 0x22], "line 1, column 2: this is not UTF-8"),
  ])
  func invalidUTF8HasAPosition(bytes: [UInt8], expected: String) {
    #expect(error(bytes) == expected)
  }

  @Test(arguments: [
    ("{\n  \"a\": 1,\n}", "trailing comma: remove the comma before it"),
    ("[1, 2 ,\t]", "trailing comma: remove the comma before it"),
    ("{\"offset\": 2,5}", "a number has a decimal point: 2.5"),
    ("[1,]", "trailing comma: remove the comma before it"),
    ("{\"manufacturer\": 0x0499}", "write a hexadecimal number in quotes"),
    ("// note\n{}", "JSON has no comments: remove it"),
    ("{ // note\n}", "JSON has no comments: remove it"),
    ("{\"a\": 1, // note\n \"b\": 2}", "JSON has no comments: remove it"),
    ("{\"a\": /* one */ 1}", "JSON has no comments: remove it"),
    ("{\"a\": 1 /* one */}", "JSON has no comments: remove it"),
    ("[1, # note\n 2]", "JSON has no comments: remove it"),
    ("{}\n# the end", "JSON has no comments: remove it"),
    ("{“a”: 1}", #"write straight double quotes: ""#), ("{\"a\": ”b”}", #"write straight double quotes: ""#),
    ("{'a': 1}", #"write straight double quotes: ""#), ("{\"a\": True}", "write true"),
    ("[FALSE]", "write false"),
    ("[None]", "write null"), ("{\"a\":}", nil), ("[,]", nil), ("[/1]", nil), ("]", nil), ("{\"a,\"}", nil),
    ("[1", nil), ("", nil),
    ("{\"a\": \"//\" 1}", nil),
  ])
  func usualMistakesGetAHint(text: String, hint: String?) {
    do throws(JSONSyntaxError) {
      _ = try JSONParser.parse(Array(text.utf8))
      Issue.record("no error")
    } catch {
      #expect(error.hint == hint)
      // The text for senders of messages has no hint.
      #expect(!error.description.contains(hint ?? "comma before"))
    }
  }

  @Test func namesAndValuesHavePositions() throws {
    let text = """
      {
        "a": { "ä": [1, {"b": null}],
      \t"b": "x\\ny" }, "": 2
      }
      """
    let document = try JSONParser.locate(Array(text.utf8))
    #expect(try document.value == parse(text))
    func at(_ path: JSONStep...) -> [Int?] {
      let position = document.positions.position(of: path)
      return [position?.line, position?.column]
    }
    #expect(at() == [1, 1])
    #expect(at(.name("a")) == [2, 3])
    #expect(at(.key("a")) == [2, 8])
    #expect(at(.key("a"), .name("ä")) == [2, 10])
    #expect(at(.key("a"), .key("ä")) == [2, 15])
    #expect(at(.key("a"), .key("ä"), .index(0)) == [2, 16])
    #expect(at(.key("a"), .key("ä"), .index(1)) == [2, 19])
    #expect(at(.key("a"), .key("ä"), .index(1), .key("b")) == [2, 25])
    #expect(at(.key("a"), .key("b")) == [3, 7])
    #expect(at(.name("")) == [3, 17])
    #expect(at(.key("")) == [3, 21])
    // A missing value has the position of what would contain it.
    #expect(at(.key("a"), .key("ä"), .index(2)) == [2, 15])
    #expect(at(.key("z"), .key("a")) == [1, 1])
  }

  @Test func toleratesAByteOrderMark() throws {
    #expect(try JSONParser.parse([0xEF, 0xBB, 0xBF, 0x31]) == .integer(1))
  }

  @Test func deepNestingIsRejected() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    _ = try parse(nested(JSONParser.maximumDepth))
    let deeper = "line 1, column 33: lists and objects nest deeper than 32"
    #expect(error(Array(nested(JSONParser.maximumDepth + 1).utf8)) == deeper)
    #expect(
      error(Array(String(repeating: "{\"a\":", count: 100_000).utf8))?.hasSuffix("nest deeper than 32")
        == true)
    // Lists beside one another do not nest.
    _ = try parse("[" + Array(repeating: "[[]],{\"a\":{}}", count: 100).joined(separator: ",") + "]")
  }

  /// To hash 32 KiB of unordered combining characters takes a second. What was written is read all the same.
  @Test func combiningCharactersInARowAreParted() throws {
    func marks(_ count: Int) -> String { "a" + String(repeating: "\u{345}\u{323}", count: count / 2) }
    #expect(marks(30).isStreamSafe && !marks(32).isStreamSafe)
    let text = try #require(parse("\"\(marks(32_000))\"").text)
    #expect(text.isStreamSafe && text.unicodeScalars.count { $0 != "\u{34F}" } == 32_001)
    let object = try parse("{\"\(marks(60))\":1}")
    #expect(try parse(object.written) == object)
    let escaped = try parse("\"" + String(repeating: "\\u0323", count: 31) + "\"").text
    #expect(escaped?.unicodeScalars.count == 32)
    let accents = String(repeating: "e\u{301}", count: 10_000)
    #expect(try parse("\"\(accents)\"").text == accents)
  }

  @Test func longKeysAreRefused() throws {
    func object(_ length: Int) -> String { "{\"" + String(repeating: "ä", count: length / 2) + "\":1}" }
    _ = try parse(object(1024))
    #expect(error(Array(object(1026).utf8)) == "line 1, column 2: a key has at most 1024 bytes")
  }

  /// Whatever the bytes, parsing can at most fail.
  @Test func randomlyDamagedDocumentsDoNotCrash() {
    var random = SplitMix64(state: 5)
    let document = Array(
      #"{"value":2000,"a":[1.5e3,"x\u00e9\n",null,true,{"b":{}}],"transaction":"a1 🌡"}"#.utf8)
    var parsed = 0
    for _ in 0..<5000 {
      var bytes = document
      for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
        let index = Int.random(in: bytes.indices, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.remove(at: index)
        default: bytes.removeLast(bytes.count - max(index, 1))
        }
      }
      if let value = try? JSONParser.parse(bytes) {
        #expect((try? JSONParser.parse(value.bytes)) == value)
        parsed += 1
      }
    }
    #expect(parsed > 100, "documents that are still valid")
  }
}

@Suite struct JSONPatchTests {
  @Test(arguments: [
    (#"{"a":{"b":1,"c":2}}"#, #"{"a":{"b":3}}"#, #"{"a":{"b":3,"c":2}}"#),
    (#"{"a":{"b":1,"c":2}}"#, #"{"a":{"b":null}}"#, #"{"a":{"c":2}}"#),
    (#"{"a":{"b":1},"d":5}"#, #"{"a":{"b":null}}"#, #"{"d":5}"#),
    (#"{"a":1}"#, #"{"a":{"b":1}}"#, #"{"a":{"b":1}}"#),
    (#"{"a":1}"#, #"{"b":null,"c":{"d":null}}"#, #"{"a":1}"#), ("[1]", #"{"a":1}"#, #"{"a":1}"#),
    (#"{"a":1}"#, "7", "7"),
  ])
  func patchChangesWhatItNames(json: String, patch: String, expected: String) throws {
    let result = try JSONParser.parse(Array(json.utf8)).patched(by: JSONParser.parse(Array(patch.utf8)))
    #expect(String(decoding: result.bytes, as: UTF8.self) == expected)
  }

  /// As a request may have them.
  @Test func thousandsOfChangesAreMadeFast() {
    func object(_ indices: Range<Int>) -> JSONValue { .object(of: indices.map { ("\($0)", .integer($0)) }) }
    #expect(object(0..<20_000).patched(by: object(10_000..<30_000)) == object(0..<30_000))
  }

  @Test func nullsAreLeftOut() throws {
    let json = try JSONParser.parse(Array(#"{"a":null,"b":{"c":null,"d":[null]},"e":1}"#.utf8))
    #expect(String(decoding: json.withoutNulls.bytes, as: UTF8.self) == #"{"b":{"d":[null]},"e":1}"#)
  }
}

@Suite struct JSONWriterTests {
  @Test func writesOnOneLineInOrder() {
    let value: JSONValue = [
      "b": .integer(-1), "a": [.null, .bool(true), .number(1.5), .number(.infinity)], "left out": nil,
      "e": [:],
      "l": [],
    ]
    #expect(
      String(decoding: value.bytes, as: UTF8.self) == #"{"b":-1,"a":[null,true,1.5,null],"e":{},"l":[]}"#)
  }

  @Test(arguments: [
    ("\u{9B}2J", #""\u009b2J""#), ("\u{7F}", #""\u007f""#), ("\u{202E}gpj", #""\u202egpj""#),
    ("\u{2028}", #""\u2028""#), ("\u{E0001}", #""\udb40\udc01""#), ("21 °C é🌡", #""21 °C é🌡""#),
  ])
  func invisibleCharactersAreEscaped(text: String, expected: String) {
    #expect(String(decoding: JSONValue.string(text).bytes, as: UTF8.self) == expected)
  }

  /// Foundation reads every string unchanged too.
  @Test func escapedStringsAreReadBackUnchanged() throws {
    var texts = ["", "plain", "\"\\/", "é€🌡", "\u{2028}\u{FEFF}", "</script>"]
    texts += (0...0xA0).compactMap { Unicode.Scalar($0).map { "a\(Character($0))b" } }
    for text in texts {
      let bytes = JSONValue.array([.string(text)]).bytes
      #expect(try JSONDecoder().decode([String].self, from: Data(bytes)) == [text])
      #expect(try JSONParser.parse(bytes) == [.string(text)])
    }
  }
}

@Suite struct ExcerptTests {
  @Test("Of several lines only the ends stay as they are: what controls a terminal is replaced")
  func linesAreHarmless() {
    #expect(
      Excerpt.harmless("time,\u{1B}]0;a\u{7}\n1,é\tb\r\n\n", keeping: "\n") == "time,·]0;a·\n1,é·b·\n\n")
  }
}
