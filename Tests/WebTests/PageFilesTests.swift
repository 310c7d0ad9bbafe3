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

  /// What `page.c` does not name so would be embedded, but not again when it has changed.
  @Test func everyFileIsADependencyOfTheBuild() throws {
    let source = String(decoding: try shipped("Sources/CPage/page.c"), as: UTF8.self)
    var count = 0
    for folder in ["Page", "SetupPage"] {
      for file in try shippedFiles(in: "Sources/Web/\(folder)", endingWith: "") {
        count += 1
        let path = file.dropFirst("Sources/Web/".count)
        #expect(source.contains("__has_include(\"\(path)\")"), "\(path)")
      }
    }
    #expect(count == 27)
  }

  /// The value of `ETag`.
  private static func tag(_ reply: HTTPReply) throws -> String {
    let line = try #require(reply.headers.first { $0.hasPrefix("ETag: ") })
    return String(line.dropFirst(6))
  }

  @Test(arguments: ["/", "/page.css", "/page.js", "/language.js", "/texts/de.json"])
  func aBrowserThatHasAFileGetsItNoSecondTime(path: String) async throws {
    let site = try await SiteUnderTest()
    let first = try await site.get(path)
    let tag = try Self.tag(first)
    #expect(tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.count > 10)
    for known in [tag, "W/" + tag, "\"a\", \(tag)", "\"a\",W/\(tag) , \"b\"", "*"] {
      let again = try await site.get(path, ["If-None-Match: \(known)"])
      #expect(again.status == 304 && again.body.isEmpty, "\(known)")
      // They take the place of those that the browser has kept.
      #expect(again.headers == first.headers)
    }
    for other in ["\"a\"", tag.replacing("\"", with: ""), "W/", "", "\"*\""] {
      let again = try await site.get(path, ["If-None-Match: \(other)"])
      #expect(again.status == 200 && again.body == first.body, "\(other)")
    }
  }

  @Test func anotherContentHasAnotherTag() async throws {
    let site = try await SiteUnderTest()
    let german = try await SiteUnderTest(http: #","language":"de""#)
    var tags = [try Self.tag(try await german.get("/"))]
    for path in ["/", "/page.css", "/page.js", "/language.js", "/texts/de.json", "/texts/en.json"] {
      tags.append(try Self.tag(try await site.get(path)))
    }
    #expect(Set(tags).count == tags.count, "\(tags)")
    #expect(try Self.tag(try await german.get("/page.js")) == tags[3])
  }

  @Test func whatABrowserHasIsToldToNobodyElse() async throws {
    let site = try await SiteUnderTest(http: #","password_file":"FOLDER/password""#)
    let any = "If-None-Match: *"
    #expect(try await site.get("/page.js", [any]).status == 401)
    #expect(try await site.get("/page.js", [any, "Authorization: Basic OnNlY3JldA=="]).status == 304)
    let open = try await SiteUnderTest()
    #expect(try await open.get("/page.js", [any, "Host: example.com"]).status == 421)
    #expect(try await HTTPReply("POST /page.js", port: open.port.number, [any], body: "{}").status == 405)
  }

  @Test func requestsFollowAnAnswerWithoutABody() async throws {
    let site = try await SiteUnderTest()
    let client = try LineClient(port: site.port.number)
    client.send("GET /page.css HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\n\r\n")
    client.send("GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let answers = try await client.rest().split(separator: "HTTP/1.1 ")
    #expect(answers.count == 2 && answers[0].hasPrefix("304 Not Modified\r\n"))
    #expect(answers[0].hasSuffix("\r\n\r\n") && answers[1].hasPrefix("404 "), "\(answers)")
  }
}
