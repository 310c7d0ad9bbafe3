import CPage
import Configuration
import EventLoop

/// The files of a page as browsers get them: the scripts are one, and each language is a file of its own. A browser keeps
/// them, and asks each time whether they are still the same.
@LoopActor final class PageFiles {
  /// The page.
  static let page = PageFiles(
    scripts: [
      "model", "values", "view", "tile", "compact", "chart", "device", "dialogs", "gateway", "record",
      "number", "page",
    ], styles: ["page"])

  /// The page for set-up in a browser. Its own texts are the member `setup`.
  static let setup = PageFiles(scripts: ["setup"], styles: ["page", "setup"])

  private let files: [String: File]

  /// - Parameter scripts: those that follow what all pages have in common, in their order.
  private init(scripts: [String], styles: [String]) {
    func joined(_ names: [String], _ suffix: String) -> [UInt8] {
      names.flatMap { Self.embedded("\($0).\(suffix)") }
    }
    var files = [
      "/page.css": File(type: "text/css; charset=utf-8", bytes: joined(styles, "css")),
      "/language.js": File(type: Self.script, bytes: joined(["language"], "js")),
      "/page.js": File(type: Self.script, bytes: joined(["elements"] + scripts, "js")),
    ]
    for language in Configuration.PageLanguage.allCases where language != .auto {
      let name = language.rawValue
      files["/texts/\(name).json"] = File(type: "application/json", bytes: joined([name], "json"))
    }
    // What follows the first two lines, the second of which is `<html …>`.
    let markup =
      String(decoding: Self.embedded("page.html"), as: UTF8.self)
      .split(separator: "\n", maxSplits: 2).last ?? ""
    for language in Configuration.PageLanguage.allCases {
      let its = "<!doctype html>\n<html lang=\"en\" data-language=\"\(language.rawValue)\">\n\(markup)"
      files[Self.document(in: language)] = File(type: "text/html; charset=utf-8", bytes: Array(its.utf8))
    }
    self.files = files
  }

  func response(_ request: HTTPRequest, _ language: Configuration.PageLanguage) -> HTTPResponse? {
    let name = request.path == "/" ? Self.document(in: language) : request.path
    guard let file = files[name] else { return nil }
    let isKnown = request.list("if-none-match").contains { ["*", file.tag, "w/" + file.tag].contains($0) }
    return HTTPResponse(
      status: isKnown ? .notModified : .ok, type: file.type, cacheControl: "no-cache",
      headers: [("Content-Security-Policy", Self.policy), ("ETag", file.tag)], body: .bytes(file.bytes))
  }

  /// Only scripts and styles of the gateway itself run, and only in files of their own.
  private static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    + "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

  private struct File {
    let type: String
    let bytes: [UInt8]
    /// Differs from the tags of other contents.
    let tag: String

    init(type: String, bytes: [UInt8]) {
      (self.type, self.bytes) = (type, bytes)
      tag = "\"\(String(Digest.of(bytes), radix: 16))\""
    }
  }

  private static let script = "text/javascript; charset=utf-8"

  /// The name of the markup with the language of the configuration, which is no path.
  private static func document(in language: Configuration.PageLanguage) -> String { "?\(language.rawValue)" }

  /// The file of that name in `Sources/Web`, which the compiler has put into the program.
  private static func embedded(_ name: String) -> UnsafeBufferPointer<UInt8> {
    let file = page_file(name)
    guard let bytes = file.bytes else { preconditionFailure("\(name) is not in CPage") }
    return UnsafeBufferPointer(start: bytes, count: Int(file.count))
  }
}
