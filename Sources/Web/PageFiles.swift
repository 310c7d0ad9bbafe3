import Configuration
import EventLoop

/// The files of a page as browsers get them: the scripts are one, and each language is a file of its own. A browser keeps
/// them, and asks each time whether they are still the same.
@LoopActor final class PageFiles {
  /// The page.
  static let page = PageFiles(
    scripts: [
      PackageResources.model_js, PackageResources.values_js, PackageResources.view_js,
      PackageResources.tile_js, PackageResources.compact_js, PackageResources.chart_js,
      PackageResources.device_js, PackageResources.dialogs_js, PackageResources.gateway_js,
      PackageResources.record_js, PackageResources.number_js, PackageResources.page_js,
    ], styles: [PackageResources.page_css])

  /// The page for set-up in a browser. Its own texts are the member `setup`.
  static let setup = PageFiles(
    scripts: [PackageResources.setup_js], styles: [PackageResources.page_css, PackageResources.setup_css])

  private let files: [String: File]

  /// - Parameter scripts: those that follow what all pages have in common, in their order.
  private init(scripts: [[UInt8]], styles: [[UInt8]]) {
    var files = [
      "/page.css": File(type: "text/css; charset=utf-8", bytes: styles.flatMap { $0 }),
      "/language.js": File(type: Self.script, bytes: PackageResources.language_js),
      "/page.js": File(type: Self.script, bytes: PackageResources.elements_js + scripts.flatMap { $0 }),
    ]
    for (language, texts) in Self.languages {
      files["/texts/\(language).json"] = File(type: "application/json", bytes: texts)
    }
    // What follows the first two lines, the second of which is `<html …>`.
    let markup =
      String(decoding: PackageResources.page_html, as: UTF8.self)
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

  private static let languages = [
    "en": PackageResources.en_json, "de": PackageResources.de_json, "fr": PackageResources.fr_json,
    "es": PackageResources.es_json, "it": PackageResources.it_json, "nl": PackageResources.nl_json,
    "pt": PackageResources.pt_json, "ja": PackageResources.ja_json, "zh": PackageResources.zh_json,
  ]
}
