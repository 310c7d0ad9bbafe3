/// Names of people and programs as levels of topics: in lower case, without separators and wildcards. The letters and
/// digits of every script stay; Latin letters lose their marks.
package enum TopicWord {
  /// The length of the longest word in Unicode scalars.
  package static let longest = 64
  /// No script has more marks on a letter. The time to compare a text grows with the square of their number.
  private static let mostMarks = 8

  /// The level for a name: `living-room` for `Living room`, `kueche` for `Küche`, `온도` for `온도`; empty for a name
  /// without letters and digits.
  /// - Parameters:
  ///   - separator: stands for each run of anything else.
  ///   - kept: characters of ASCII that stay.
  package static func word(
    _ text: some StringProtocol, separator: Unicode.Scalar = "-", keeping kept: [Unicode.Scalar] = []
  ) -> String {
    var word: [UInt8] = []
    var last: Unicode.Scalar?
    var (isApart, marks) = (false, 0)
    func append(_ letter: Unicode.Scalar) {
      if isApart, last != nil { word.append(UInt8(ascii: separator)) }
      isApart = false
      if letter.isASCII { word.append(UInt8(ascii: letter)) } else { word += String(letter).utf8 }
      (last, marks) = (letter, 0)
    }
    func appendMark(_ mark: Unicode.Scalar) {
      guard !isApart, let letter = last else { return }
      if !letter.isASCII {
        guard marks < mostMarks else { return }
        let count = marks + 1
        append(mark)
        marks = count
      } else if mark == "\u{308}", letter == "a" || letter == "o" || letter == "u" {
        append("e")
      }
    }
    for scalar in text.unicodeScalars {
      // The wide forms of ASCII, which Chinese and Japanese keyboards have.
      let isWide = (0xFF01...0xFF5E).contains(scalar.value)
      let scalar = isWide ? Unicode.Scalar(UInt8(scalar.value - 0xFEE0)) : scalar
      switch scalar {
      case "a"..."z", "0"..."9": append(scalar)
      case "A"..."Z": append(Unicode.Scalar(UInt8(scalar.value) | 0x20))
      case _ where scalar.isASCII: if kept.contains(scalar) { append(scalar) } else { isApart = true }
      case _:
        let properties = scalar.properties
        if properties.isDefaultIgnorableCodePoint { continue }
        if scalar.isMark {
          appendMark(scalar)
        } else if properties.isAlphabetic || properties.generalCategory == .decimalNumber {
          for letter in properties.lowercaseMapping.unicodeScalars {
            if letter.isMark {
              appendMark(letter)
            } else {
              withoutMarks(letter).forEach(append)
            }
          }
        } else {
          isApart = true
        }
      }
    }
    return String(decoding: word, as: UTF8.self)
  }

  /// The id for a name; nil if no reasonable one results.
  package static func similar(to text: String) -> String? {
    let word = word(text)
    return (try? DeviceID(word)) == nil ? nil : word
  }

  /// Whether a text can be such a level: it may have `_` and `-` anywhere.
  package static func isValid(_ text: some StringProtocol) -> Bool {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return isPlain(text) }
    return text.unicodeScalars.count <= longest
      && word(text, keeping: ["_", "-"]).unicodeScalars.elementsEqual(text.unicodeScalars)
  }

  /// Whether the text is made of `[a-z0-9_-]`, as the names of gateways, profiles and requests are.
  package static func isPlain(_ text: some StringProtocol) -> Bool {
    (1...longest).contains(text.utf8.count) && text.unicodeScalars.allSatisfy { isPlain($0) }
  }

  package static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "0"..."9", "_", "-": true
    default: false
    }
  }

  /// The word in ASCII, another one for each: `U` and the number of a letter of another script, then `_`.
  package static func ascii(_ word: String) -> String {
    word.unicodeScalars.map { $0.isASCII ? String($0) : "U\(String($0.value, radix: 16, uppercase: true))_" }
      .joined()
  }

  /// Letters that are two without their marks, or that have no name with these.
  private static let letters: [Unicode.Scalar: String] = [
    "ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "oe", "ı": "i",
  ]

  /// A letter in lower case, which its name in Unicode describes: `LATIN SMALL LETTER E WITH CIRCUMFLEX AND ACUTE`.
  private static func withoutMarks(_ letter: Unicode.Scalar) -> String.UnicodeScalarView {
    if let letters = letters[letter] { return letters.unicodeScalars }
    let words = letter.properties.name?.split(separator: " ") ?? []
    guard words.count == 4 || words.count > 4 && words[4] == "WITH", words[..<2] == ["LATIN", "SMALL"],
      ["LETTER", "LIGATURE"].contains(words[2]), words[3].utf8.count <= 2
    else { return String(letter).unicodeScalars }
    return words[3].lowercased().unicodeScalars
  }
}

extension Unicode.Scalar {
  /// Older versions of Unicode have combining characters that do not extend a grapheme.
  fileprivate var isMark: Bool {
    properties.isGraphemeExtend || properties.canonicalCombiningClass != .notReordered
  }
}
