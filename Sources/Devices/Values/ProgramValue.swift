import Configuration
import GATT
import JSON

/// A value in a message of a device's program.
struct ProgramValue: Equatable, Sendable {
  let name: ValueName
  /// A number, a text, true or false.
  let value: Value
  /// The unit behind the number, as Home Assistant writes it.
  var unit: String?

  var isNumber: Bool { value.doubleValue != nil }
  var isBool: Bool { if case .bool = value { true } else { false } }

  /// The maximum length of a text that is a value, in bytes. Home Assistant shows no longer one.
  fileprivate static let longestText = 255

  /// What a message consists of.
  struct Message: Equatable, Sendable {
    var values: [ProgramValue] = []
    /// Whether nothing of the message was left out.
    var isWhole = true
    /// Whether the message has more or fewer numbers than the configuration names.
    var hasOtherColumns = false

    /// Whether the message is nothing but ``values``.
    var isOnlyValues: Bool { isWhole && !values.isEmpty }
  }

  /// The names of numbers that have none, by the configuration; nil stands for one that is left out.
  struct Columns: Sendable {
    /// The names of the numbers in a message.
    var ofMessage: [ValueName?]?
    /// The names of the numbers behind a name.
    var ofName: [ValueKey: [ValueName?]] = [:]
  }

  /// The values in a message, which is UTF-8.
  /// - Parameters:
  ///   - name: the name in the message, if a packet has it apart from its number: `player 2` of `player 2:25`.
  ///   - isNumber: whether the values of a name are known as numbers. Of others `at 12:30` is a time.
  static func values(
    in message: [UInt8], _ columns: Columns = Columns(), name: [UInt8]? = nil,
    isNumber: (ValueKey) -> Bool = { _ in false }
  ) -> Message {
    if let written = name, let name = self.name(written[...], isApart: true),
      let (number, unit) = number(trimmed(message.dropFirst(written.count + 1)), of: name)
    {
      return Message(values: [ProgramValue(name: name, value: number, unit: unit)])
    }
    var text = trimmed(message[...])
    if let last = text.last, ends.contains(last) { text = trimmed(text.dropLast()) }
    // A JSON object may stand between two such characters.
    if let first = text.first, ends.contains(first), text.dropFirst().first == UInt8(ascii: "{") {
      text = text.dropFirst()
    }
    switch text.first {
    case nil: return Message()
    case UInt8(ascii: "[") where columns.ofMessage == nil: return Message()
    case UInt8(ascii: "{"): return JSONValues.message(text)
    case _: break
    }
    if let values = list(text, isNumber) { return Message(values: values) }
    let pair = pair(text, isNumber) { columns.ofName[$0] != nil }
    var message = Message(values: pair.map { [$0] } ?? [])
    if let pair, case .text(let list) = pair.value, let names = columns.ofName[pair.name.key] {
      if list.utf8.contains(UInt8(ascii: " ")) { message.values = [] }
      take(Array(list.utf8)[...], names, behind: pair.name.written, into: &message)
    } else if pair == nil, let names = columns.ofMessage {
      take(text, names, into: &message)
    }
    return message
  }

  /// The numbers in `text` are the message's values, if there are as many as names.
  private static func take(
    _ text: ArraySlice<UInt8>, _ names: [ValueName?], behind prefix: String? = nil,
    into message: inout Message
  ) {
    let text = withoutBrackets(text)
    let isBetween = text.contains(where: isSeparator) ? isSeparator : isSpace
    let parts = text.split(omittingEmptySubsequences: isBetween(UInt8(ascii: " ")), whereSeparator: isBetween)
      .map(trimmed)
    if parts.count == names.count {
      if let numbers = numbers(parts, names, behind: prefix) { message.values = numbers }
    } else if parts.count > 1, parts.contains(where: { !$0.isEmpty }) {
      message.hasOtherColumns = parts.allSatisfy { $0.isEmpty || number($0) != nil }
    }
  }

  /// The parts as values; nil unless each part that has a name is a number.
  private static func numbers(
    _ parts: [ArraySlice<UInt8>], _ names: [ValueName?], behind prefix: String?
  ) -> [ProgramValue]? {
    var values: [ProgramValue] = []
    for (part, name) in zip(parts, names) {
      guard let name else { continue }
      guard let name = prefix.map({ ValueName("\($0)_\(name.written)") }) ?? name,
        let (number, unit) = number(part, of: name)
      else { return nil }
      values.append(ProgramValue(name: name, value: number, unit: unit))
    }
    return values
  }

  /// `(1, 2, 3)` and `[1, 2, 3]` as MicroPython prints them.
  private static func withoutBrackets(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    switch (text.first, text.last) {
    case (UInt8(ascii: "("), UInt8(ascii: ")")), (UInt8(ascii: "["), UInt8(ascii: "]")):
      text.dropFirst().dropLast()
    default: text
    }
  }

  /// `x: 1 y: 2` without the spaces behind the colons.
  private static func joined(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var joined: [UInt8] = []
    for byte in text where byte != UInt8(ascii: " ") || !(joined.last.map(":=".utf8.contains) ?? false) {
      joined.append(byte)
    }
    return joined[...]
  }

  private static let ends = Array("#;,|$".utf8)

  private static func isSeparator(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ";"), UInt8(ascii: ","), UInt8(ascii: "|"), UInt8(ascii: "\t"): true
    case _: false
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") }

  private static func list(_ text: ArraySlice<UInt8>, _ isNumber: (ValueKey) -> Bool) -> [ProgramValue]? {
    list(text, isNumber, isSeparator) ?? list(joined(text), isNumber, isSpace)
  }

  /// The values in a list; nil unless there are several parts, and each is a name and a number. Between spaces a part
  /// may be the unit of the number before it.
  private static func list(
    _ text: ArraySlice<UInt8>, _ isNumber: (ValueKey) -> Bool, _ isBetween: (UInt8) -> Bool
  ) -> [ProgramValue]? {
    guard text.contains(where: isBetween) else { return nil }
    let hasSpaces = isBetween(UInt8(ascii: " "))
    var values: [ProgramValue] = []
    for part in text.split(omittingEmptySubsequences: hasSpaces, whereSeparator: isBetween).map(trimmed) {
      if let value = pair(part, isNumber), value.isNumber {
        values.append(value)
      } else if hasSpaces, let last = values.popLast(), let unit = unit(part, behind: last) {
        values.append(ProgramValue(name: last.name, value: last.value, unit: unit))
      } else {
        return nil
      }
    }
    return values
  }

  /// The unit that a word behind a number is, or ends: that of `21° C` is two words.
  private static func unit(_ word: ArraySlice<UInt8>, behind value: ProgramValue) -> String? {
    let word = String(decoding: word, as: UTF8.self)
    return unit(value.unit.map { "\($0) \(word)" } ?? word, isApart: true, of: value.name)
  }

  /// The name in a text that may end with a mark: MakeCode's blocks write `temp::21` for the name `temp:`.
  private static func name(_ text: ArraySlice<UInt8>, isApart: Bool = false) -> ValueName? {
    guard let end = text.lastIndex(where: { !" :=".utf8.contains($0) }) else { return nil }
    return ValueName(String(decoding: text[...end], as: UTF8.self), isApart: isApart)
  }

  /// `name:value`, `name=value` or `name::value`.
  /// - Parameter isList: whether the configuration names the numbers behind the name.
  private static func pair(
    _ text: ArraySlice<UInt8>, _ isNumber: (ValueKey) -> Bool,
    isList: (ValueKey) -> Bool = { _ in false }
  ) -> ProgramValue? {
    let colon = text.firstIndex(of: UInt8(ascii: ":"))
    guard let index = colon ?? text.firstIndex(of: UInt8(ascii: "=")) else { return nil }
    let (mark, rest) = (text[index], text[(index + 1)...])
    let written = trimmed(text[..<index])
    var content = trimmed(rest)
    let isDoubled = colon != nil && content.first.map(":=".utf8.contains) == true
    if isDoubled { content = content.drop(while: " :=".utf8.contains) }
    guard !content.contains(mark), !written.contains(where: isSeparator), let name = name(written) else {
      return nil
    }
    // `time=9:05` and `L=100:R=200` have a name that ends before the colon, and a value that is none.
    if colon != nil, name.written.utf8.contains(UInt8(ascii: "=")) { return nil }
    if let (number, unit) = number(content, of: name) {
      let mayBeTime = colon != nil && unit == nil && isTime(written, rest)
      return mayBeTime && !isNumber(name.key) ? nil : ProgramValue(name: name, value: number, unit: unit)
    }
    // In a sentence a space follows the colon, or there are spaces before it.
    guard !content.isEmpty, !isDoubled, rest.count <= longestText, !written.contains(UInt8(ascii: " ")),
      rest.first != UInt8(ascii: " ") || isList(name.key)
    else { return nil }
    return ProgramValue(name: name, value: .text(String(decoding: content, as: UTF8.self)))
  }

  /// Whether hours end what stands before a colon, and minutes begin what stands behind it: `at 12:30`.
  private static func isTime(_ before: ArraySlice<UInt8>, _ behind: ArraySlice<UInt8>) -> Bool {
    let hours = before.split(whereSeparator: " =".utf8.contains).dropFirst().last ?? []
    let minutes = behind.prefix(while: isDigit)
    return hours.count == 2 && hours.allSatisfy(isDigit) && hours.lexicographicallyPrecedes("25".utf8)
      && minutes.count == 2 && minutes.lexicographicallyPrecedes("6".utf8)
      && behind.dropFirst(2).first != UInt8(ascii: ".")
  }

  // MARK: Numbers

  /// A number without anything behind it.
  static func bareNumber(_ text: ArraySlice<UInt8>) -> Value? {
    guard let last = text.last, isDigit(last) || last == UInt8(ascii: ".") else { return nil }
    return plainNumber(text)
  }

  /// A number as JavaScript writes it, `+5`, `.5` or `5.`, and a unit behind it, known or not.
  /// - Parameter name: of the value: of others than temperatures `5c` is a class, and `1f` hexadecimal.
  static func number(_ text: ArraySlice<UInt8>, of name: ValueName? = nil) -> (Value, unit: String?)? {
    if let number = bareNumber(text) { return (number, nil) }
    guard let end = text.lastIndex(where: { isDigit($0) || $0 == UInt8(ascii: ".") }) else {
      return words[String(decoding: text, as: UTF8.self)].map { (.number($0), nil) }
    }
    let word = text[(end + 1)...]
    let isApart = word.first.map(isSpace) ?? false
    let unit = unit(String(decoding: trimmed(word), as: UTF8.self), isApart: isApart, of: name)
    guard unit != nil || isApart && mayBeUnit(word.dropFirst()) else { return nil }
    return plainNumber(text[...end]).map { ($0, unit) }
  }

  private static func unit(_ word: String, isApart: Bool, of name: ValueName?) -> String? {
    let isSmall = word.utf8.last.map("cf".utf8.contains) == true
    return isSmall && name?.mayBeTemperature != true ? nil : ValueName.unit(word, isApart: isApart)
  }

  /// Whether a word may be a unit that is not known, as in `5 mph`.
  private static func mayBeUnit(_ word: ArraySlice<UInt8>) -> Bool {
    let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
    return word.count <= 8
      && word.allSatisfy { letters.contains($0 | 0x20) || $0 >= 0x80 || $0 == UInt8(ascii: "/") }
  }

  private static let words = ["NaN": Double.nan, "Infinity": .infinity, "-Infinity": -.infinity]

  private static func plainNumber(_ text: ArraySlice<UInt8>) -> Value? {
    // Otherwise `Double` also takes hexadecimal digits.
    guard text.allSatisfy({ isDigit($0) || "+-.eE".utf8.contains($0) }) else { return nil }
    // `93E51202` is hexadecimal: programs write an exponent with its sign.
    if let mark = text.firstIndex(where: "eE".utf8.contains),
      text[(mark + 1)...].first.map("+-".utf8.contains) != true
    {
      return nil
    }
    let digits = String(decoding: text, as: UTF8.self)
    if let integer = Int(digits) { return .integer(integer) }
    return Double(digits).map(Value.number)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
    guard let end = text.lastIndex(where: { !isBlank($0) }) else { return [] }
    return text[...end].drop(while: isBlank)
  }
}

extension ValueName {
  fileprivate var mayBeTemperature: Bool {
    key.description == "t" || key.description.hasOccurrence(of: "temp")
  }
}

/// The values in a JSON object of a program: nested ones with `_` between the names.
private enum JSONValues {
  static func message(_ text: ArraySlice<UInt8>) -> ProgramValue.Message {
    var message = ProgramValue.Message()
    if case .object(let object) = try? JSONParser.parse(Array(text)) { add(object, to: &message) }
    return message
  }

  private static func add(
    _ object: JSONObject, after prefix: String = "", to message: inout ProgramValue.Message
  ) {
    for member in object.members {
      let name = prefix + member.name
      let value: Value?
      switch member.value {
      case .integer(let number): value = .integer(number)
      case .number(let number): value = .number(number)
      case .bool(let bool): value = .bool(bool)
      case .string(let text) where text.utf8.count <= ProgramValue.longestText && !text.hasControlCharacters:
        value = .text(text)
      case .object(let object):
        add(object, after: name + "_", to: &message)
        continue
      case .string, .array, .null: value = nil
      }
      if let value, let name = ValueName(name) {
        message.values.append(ProgramValue(name: name, value: value))
      } else {
        message.isWhole = false
      }
    }
  }
}
