import TestSupport
import Testing

@testable import Web

@Suite struct PageFilesTests {
  @Test func onlyScriptsAndStylesOfTheGatewayRun() async throws {
    let site = try await SiteUnderTest()
    for (path, file) in [
      ("/", "page.html"), ("/page.css", "page.css"), ("/language.js", "language.js"),
      ("/texts/de.json", "texts/de.json"),
    ] {
      let reply = try await site.get(path)
      #expect(reply.status == 200)
      let text = String(decoding: try shipped("Sources/Web/Page/\(file)"), as: UTF8.self)
      #expect(reply.body == text)
      let policy = reply.headers.first { $0.hasPrefix("Content-Security-Policy: default-src 'none'") }
      #expect(
        policy?.contains("script-src 'self'; style-src 'self'") == true && policy?.contains("unsafe") == false
      )
      #expect(!reply.headers.contains { $0.hasPrefix("Content-Encoding") })
    }
    #expect(try await site.get("/texts/xx.json").status == 404)
  }

  @Test func theDocumentTellsTheLanguageOfTheConfiguration() async throws {
    let site = try await SiteUnderTest(http: #","language":"de""#)
    #expect(try await site.get("/").body.contains(#"<html lang="en" data-language="de">"#))
  }

  @Test func theScriptIsAllOfItsParts() async throws {
    let site = try await SiteUnderTest()
    let script = try await site.get("/page.js").body
    for part in try shippedFiles(in: "Sources/Web/Page", endingWith: ".js")
    where !part.hasSuffix("language.js") {
      let text = String(decoding: try shipped(part), as: UTF8.self)
      #expect(script.contains(text), "\(part) is missing")
    }
  }

  @Test func browsersGetThemCompressedButNotThroughTheIngress() async throws {
    let site = try await SiteUnderTest()
    let accepts = "Accept-Encoding: br, gzip"
    let zipped = try await site.get("/page.js", [accepts]).headers
    #expect(zipped.contains("Content-Encoding: gzip") && zipped.contains("Vary: Accept-Encoding"))
    let passedOn = try await site.get("/page.js", [accepts, "X-Ingress-Path: /api/hassio_ingress/token"])
      .headers
    #expect(!passedOn.contains("Content-Encoding: gzip"))
  }

  @Test(arguments: ["", "a", "abab", String(repeating: "x", count: 70_000), "äöü\u{0}日本 äöü\u{0}日本"])
  func gzipGivesTheTextBack(text: String) throws {
    var reader = FixedInflater(bytes: Gzip.compress(Array(text.utf8)))
    #expect(try reader.text() == Array(text.utf8))
  }
}

/// Reads gzip with one block of the fixed codes.
private struct FixedInflater {
  let bytes: [UInt8]
  var bit = 10 * 8

  mutating func next(_ count: Int) throws -> Int {
    var value = 0
    for place in 0..<count {
      guard bit / 8 < bytes.count else { throw Failure("it ends too early") }
      value |= Int(bytes[bit / 8] >> UInt8(bit % 8) & 1) << place
      bit += 1
    }
    return value
  }

  mutating func code(_ count: Int, from start: Int = 0) throws -> Int {
    var value = start
    for _ in 0..<count { value = try value << 1 | next(1) }
    return value
  }

  mutating func symbol() throws -> Int {
    let seven = try code(7)
    if seven < 24 { return 256 + seven }
    let eight = try code(1, from: seven)
    if eight < 192 { return eight - 48 }
    if eight < 200 { return 280 + eight - 192 }
    return try code(1, from: eight) - 400 + 144
  }

  mutating func text() throws -> [UInt8] {
    guard try next(3) == 3 else { throw Failure("it is no last block of the fixed codes") }
    var text: [UInt8] = []
    while true {
      let symbol = try symbol()
      if symbol == 256 { return text }
      if symbol < 256 {
        text.append(UInt8(symbol))
        continue
      }
      let code = symbol - 257
      let further = code < 8 || code == 28 ? 0 : code / 4 - 1
      let length =
        code == 28 ? 258 : (code < 8 ? 3 + code : 3 + (4 + code % 4) << further) + (try next(further))
      let far = try self.code(5)
      let bits = far < 4 ? 0 : far / 2 - 1
      let distance = (far < 4 ? 1 + far : 1 + (2 + far % 2) << bits) + (try next(bits))
      guard distance <= text.count else { throw Failure("it refers to what is not there") }
      for _ in 0..<length { text.append(text[text.count - distance]) }
    }
  }
}
