import JSON

/// A valid topic name to publish to. Validated once, when it is created.
public struct TopicName: Hashable, Sendable, CustomStringConvertible {
  /// The name as text.
  public let string: String
  /// Computed once: topics are looked up far more often than created.
  private let hash: Int

  /// Creates a name; nil if brokers would reject it: an empty name, more than 65535 bytes of UTF-8, a wildcard, NUL, or
  /// a control or non-character that MQTT 5 (1.5.4) allows brokers to reject, as mosquitto does; and nil with more than
  /// 30 combining characters in a row, which take long to compare.
  public init?(_ string: String) {
    guard isTopicText(string), !string.utf8.contains(where: { $0 == Mark.plus || $0 == Mark.hash }) else {
      return nil
    }
    self.string = string
    hash = string.hashValue
  }

  /// Compares the hashes first, which differ for nearly all names.
  public static func == (a: TopicName, b: TopicName) -> Bool { a.hash == b.hash && a.string == b.string }
  /// Uses the stored hash.
  public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

  /// Whether the name begins with `prefix`, compared byte by byte, as brokers do.
  package func hasPrefix(_ prefix: String) -> Bool { string.utf8.starts(with: prefix.utf8) }

  /// The name as it is; the log escapes it.
  public var description: String { string }
}

/// A valid topic filter of a subscription, in which `+` matches one level, and a final `#` all following ones.
public struct TopicFilter: Hashable, Sendable, CustomStringConvertible {
  /// The filter as text.
  public let string: String

  /// Creates a filter; nil if brokers would reject it: see ``TopicName/init(_:)``; `+` must be a level of its own, `#`
  /// the last level.
  public init?(_ string: String) {
    guard isTopicText(string) else { return nil }
    let levels = string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    for (index, level) in levels.enumerated() {
      if level.contains(Mark.plus), level.count > 1 { return nil }
      if level.contains(Mark.hash), level.count > 1 || index < levels.count - 1 { return nil }
    }
    self.string = string
  }

  /// A filter that only matches `topic`.
  public init(_ topic: TopicName) {
    string = topic.string
  }

  /// The filter as it is, with its wildcards.
  public var description: String { string }
}

private enum Mark {
  static let plus = UInt8(ascii: "+")
  static let hash = UInt8(ascii: "#")
}

private func isTopicText(_ string: String) -> Bool {
  guard (1...65535).contains(string.utf8.count), string.isStreamSafe else { return false }
  return string.unicodeScalars.allSatisfy { scalar in
    switch scalar.value {
    case 0...0x1F, 0x7F...0x9F, 0xFDD0...0xFDEF: false
    case let value: value & 0xFFFE != 0xFFFE
    }
  }
}
