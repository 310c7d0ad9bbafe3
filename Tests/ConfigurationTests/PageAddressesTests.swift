import JSON
import Testing

@testable import Configuration

/// Where browsers find the page, and whether it may be one for set-up.
@Suite struct PageAddressesTests {
  private static let addresses = ["192.0.2.7", "fd00::2"]

  private static let places: [(String, String, [String])] = [
    ("0.0.0.0", "pi", ["http://pi.local:8484/", "http://192.0.2.7:8484/"]),
    ("::", "pi", ["http://pi.local:8484/", "http://192.0.2.7:8484/", "http://[fd00::2]:8484/"]),
    ("::", "pi.example", ["http://pi.example:8484/", "http://192.0.2.7:8484/", "http://[fd00::2]:8484/"]),
    ("::", "", ["http://192.0.2.7:8484/", "http://[fd00::2]:8484/"]),
    ("192.0.2.7", "pi", ["http://192.0.2.7:8484/"]),
    ("127.0.0.1", "pi", ["http://127.0.0.1:8484/"]), ("fd00::2", "pi", ["http://[fd00::2]:8484/"]),
    ("127.0.0.1 fd00::2", "pi", ["http://127.0.0.1:8484/", "http://[fd00::2]:8484/"]),
  ]

  @Test(arguments: places)
  func urlsCanBeOpened(address: String, host: String, urls: [String]) {
    var http = Configuration.HTTP()
    http.addresses = address.split(separator: " ").map(String.init)
    #expect(http.urls(host, Self.addresses) == urls)
  }

  @Test func withoutANetworkThereIsThisMachine() {
    var http = Configuration.HTTP()
    http.addresses = ["::"]
    #expect(http.urls("pi", []) == ["http://127.0.0.1:8484/"])
  }

  private static let files: [(String, Bool)] = [
    ("{}", false), (#"{"http":{"port":80,"language":"de"}}"#, false),
    (#"{"mqtt":{"host":"localhost","port":1883}}"#, false),
    (#"{"gateway":{"id":"attic","area":"Roof"}}"#, false),
    (#"{"devices":[{"match":{"name_prefix":"BBC micro:bit"}}]}"#, false),
    (#"{"bluetooth":{"adapter":"hci1"}}"#, false),
    (#"{"http":{"enabled":false}}"#, true), (#"{"http":{"enabled":true}}"#, true),
    (#"{"http":{"password_file":"p"}}"#, true),
    (#"{"http":{"address":"192.0.2.7","password_file":"p"}}"#, true),
    (#"{"mqtt":{"username":"u"}}"#, true), (#"{"mqtt":{"password_file":"p","username":"u"}}"#, true),
    (#"{"mqtt":{"host":"broker"}}"#, true), (#"{"mqtt":{"port":1884}}"#, true),
    (#"{"mqtt":{"tls":{}}}"#, true),
    (#"{"devices":[]}"#, true), (#"{"devices":[{"match":{"name":"x"},"id":"x"}]}"#, true),
    (#"{"fleet":true}"#, true),
  ]

  @Test("Whatever somebody has decided closes the set-up in a browser", arguments: files)
  func setUp(text: String, isSetUp: Bool) throws {
    let file = try ConfigurationFile.parse(
      Array(text.utf8), at: "/tmp/config.json", filesMayBeAway: true)
    #expect(file.isSetUp == isSetUp)
  }
}
