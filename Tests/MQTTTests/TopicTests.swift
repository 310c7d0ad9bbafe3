import TestSupport
import Testing

@testable import MQTT

@Suite struct TopicTests {
  @Test(arguments: ["a", "a/b", "/", "/a//", "microbit/c5a1b2c3d4e5/temperature", "küche/溫度", "$SYS/x"])
  func validNamesAreAccepted(_ text: String) {
    #expect(TopicName(text)?.string == text)
  }

  @Test(arguments: ["", "+", "a/#", "a+b", "a\0b", "a\nb", "\u{7F}", "\u{85}"])
  func invalidNamesAreRefused(_ text: String) {
    #expect(TopicName(text) == nil)
  }

  @Test func nonCharactersAreRefused() {
    for value in [0xFDD0, 0xFDEF, 0xFFFF, 0x1FFFE, 0x10FFFF] as [UInt32] {
      #expect(TopicName("a" + String(UnicodeScalar(value)!)) == nil)
    }
    #expect(TopicName("a\u{FDF0}\u{FFFD}") != nil)
  }

  /// To hash a text of many takes seconds.
  @Test func combiningCharactersInARowAreLimited() {
    func topic(_ marks: Int) -> String { "a" + String(repeating: "\u{345}\u{323}", count: marks / 2) }
    #expect(TopicName(topic(30)) != nil)
    #expect(TopicName(topic(32)) == nil && TopicFilter(topic(30_000)) == nil)
  }

  @Test func theLengthIsCountedInBytes() {
    #expect(TopicName(String(repeating: "a", count: 65535)) != nil)
    #expect(TopicName(String(repeating: "a", count: 65536)) == nil)
    #expect(TopicName(String(repeating: "ü", count: 32768)) == nil)
  }

  @Test(arguments: ["#", "+", "a", "+/+", "a/#", "/#", "a/+/b", "/", "+/#", "$SYS/#"])
  func validFiltersAreAccepted(_ text: String) {
    #expect(TopicFilter(text)?.string == text)
  }

  @Test(arguments: ["", "a#", "#/a", "a/#/b", "a+", "+a/b", "a/b+/c", "##", "a/++", "a\0"])
  func invalidFiltersAreRefused(_ text: String) {
    #expect(TopicFilter(text) == nil)
  }

  /// The examples of MQTT 5, section 4.7, and edge cases.
  @Test(arguments: [
    ("sport/tennis/player1/#", "sport/tennis/player1", true),
    ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
    ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
    ("sport/tennis/player1/#", "sport/tennis/player10", false),
    ("sport/#", "sport", true), ("#", "a/b/c", true), ("#", "/", true),
    ("sport/tennis/+", "sport/tennis/player1", true),
    ("sport/tennis/+", "sport/tennis/player1/ranking", false),
    ("sport/+", "sport", false), ("sport/+", "sport/", true),
    ("+/+", "/finance", true), ("/+", "/finance", true), ("+", "/finance", false),
    ("+/monitor/Clients", "$SYS/monitor/Clients", false), ("#", "$SYS/x", false),
    ("$SYS/#", "$SYS/x", true), ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
    ("a/b", "a/b", true), ("a/b", "a/b/", false), ("a/b/", "a/b", false), ("a", "A", false),
    ("+/b/#", "a/b", true), ("+/b/#", "a/c", false), ("a/+/c", "a//c", true),
    ("a", "ab", false), ("ab", "a", false),
  ])
  func filtersMatchAsSpecified(_ filter: String, _ topic: String, _ expected: Bool) throws {
    let filter = try #require(TopicFilter(filter))
    let topic = try #require(TopicName(topic))
    #expect(filter.matches(topic) == expected)
  }

  @Test func filterMadeFromATopicMatchesOnlyThatTopic() throws {
    let topic = try #require(TopicName("a/b"))
    #expect(TopicFilter(topic).matches(topic))
    #expect(!TopicFilter(topic).matches(try #require(TopicName("a/b/c"))))
  }
}
