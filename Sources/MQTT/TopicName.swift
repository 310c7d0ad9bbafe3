/// The name of one topic: what a message is published to. Valid from the moment it exists, so that nothing
/// needs to look at it again on the way to the broker.
public struct TopicName: Hashable, Sendable, CustomStringConvertible {
  /// The name as text, `/` between its levels.
  public let string: String
  /// Made once: topics are looked up far more often than they are made.
  private let hash: Int

  /// Nil for what no broker takes: an empty name, more than 65535 bytes of UTF-8, a wildcard, NUL, or one of
  /// the control and non-characters that MQTT 5 (1.5.4) lets a broker refuse and mosquitto does refuse.
  public init?(_ string: String) {
    guard isTopicText(string), !string.utf8.contains(where: { $0 == Mark.plus || $0 == Mark.hash }) else {
      return nil
    }
    self.string = contiguous(string)
    hash = string.hashValue
  }

  /// By the hashes first: they tell nearly all names apart, without a look at the texts.
  public static func == (a: TopicName, b: TopicName) -> Bool { a.hash == b.hash && a.string == b.string }
  /// By the hash that was made with the name: the text is not gone through again.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// The name as it stands, for the log, which escapes it.
  public var description: String { string }
}

/// Which topics a subscription is for: a topic name in which `+` stands for one level and a final `#` for
/// all that follow.
public struct TopicFilter: Hashable, Sendable, CustomStringConvertible {
  /// The filter as text.
  public let string: String

  /// Nil for what no broker takes: see ``TopicName/init(_:)``; besides, `+` must fill a level and `#` must
  /// fill the last one.
  public init?(_ string: String) {
    guard isTopicText(string) else { return nil }
    var start = string.utf8.startIndex
    while true {
      let end = string.utf8[start...].firstIndex(of: Mark.slash) ?? string.utf8.endIndex
      let level = string.utf8[start..<end]
      let isLast = end == string.utf8.endIndex
      if level.contains(Mark.plus), !level.elementsEqual([Mark.plus]) { return nil }
      if level.contains(Mark.hash), !(isLast && level.elementsEqual([Mark.hash])) { return nil }
      if isLast { break }
      start = string.utf8.index(after: end)
    }
    self.string = contiguous(string)
  }

  /// The filter that matches `topic` alone.
  public init(_ topic: TopicName) {
    string = topic.string
  }

  /// The filter as it stands, wildcards and all.
  public var description: String { string }

  /// Whether a message to `topic` is one of those this filter asks for (MQTT 5, 4.7).
  public func matches(_ topic: TopicName) -> Bool {
    var filter = string.utf8[...]
    var name = topic.string.utf8[...]
    // Topics of the broker itself are not meant by a wildcard in front.
    if name.first == Mark.dollar, filter.first == Mark.plus || filter.first == Mark.hash { return false }
    while true {
      let wanted = filter.prefix { $0 != Mark.slash }
      if wanted.first == Mark.hash { return true }
      let level = name.prefix { $0 != Mark.slash }
      guard wanted.first == Mark.plus || wanted.elementsEqual(level) else { return false }
      filter = filter[wanted.endIndex...]
      name = name[level.endIndex...]
      // Each is now empty, or begins with the Mark.slash before its next level.
      switch (filter.isEmpty, name.isEmpty) {
      case (true, true): return true
      case (true, false): return false
      // `a/#` means `a` too.
      case (false, true): return filter.elementsEqual([Mark.slash, Mark.hash])
      case (false, false): break
      }
      filter = filter.dropFirst()
      name = name.dropFirst()
    }
  }
}

private enum Mark {
  static let plus = UInt8(ascii: "+")
  static let hash = UInt8(ascii: "#")
  static let slash = UInt8(ascii: "/")
  static let dollar = UInt8(ascii: "$")
}

private func isTopicText(_ string: String) -> Bool {
  guard (1...65535).contains(string.utf8.count) else { return false }
  return string.unicodeScalars.allSatisfy { scalar in
    switch scalar.value {
    case 0...0x1F, 0x7F...0x9F, 0xFDD0...0xFDEF: false
    case let value: value & 0xFFFE != 0xFFFE
    }
  }
}

private func contiguous(_ string: String) -> String {
  var string = string
  string.makeContiguousUTF8()
  return string
}
