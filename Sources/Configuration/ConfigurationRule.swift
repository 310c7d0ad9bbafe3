import GATT
import JSON

/// What a key may hold, and how it is read and written.
package struct ConfigurationRule<Value>: Sendable {
  /// Reads JSON; nil, with an error added, when it is not valid. `current` is the value so far, for an object that
  /// names only some of its keys.
  package typealias Read =
    @Sendable (
      _ json: JSONValue, _ current: Value?, _ path: ConfigurationPath, _ errors: inout [ConfigurationError]
    ) -> Value?

  package let shape: ConfigurationShape
  package let read: Read
  /// Writes a value; nil for one that is written by leaving its key out.
  package let write: @Sendable (Value) -> JSONValue?

  /// A rule that reads every kind of JSON itself.
  package init(
    shape: ConfigurationShape, read: @escaping Read, write: @escaping @Sendable (Value) -> JSONValue?
  ) {
    self.shape = shape
    self.read = read
    self.write = write
  }
}

extension ConfigurationRule {
  /// A rule for another type, whose values are made of those of this rule. It reads without the value so far.
  /// - Parameter back: makes this rule's value of one; nil where the key is left out.
  package func map<Other>(
    _ value: @escaping @Sendable (Value) -> Other, back: @escaping @Sendable (Other) -> Value?
  ) -> ConfigurationRule<Other> {
    ConfigurationRule<Other>(
      shape: shape, read: { json, _, path, errors in read(json, nil, path, &errors).map(value) },
      write: { back($0).flatMap(write) })
  }
}

/// The type of a key, as in the JSON schema.
package indirect enum ConfigurationShape: Sendable, Equatable {
  case bool
  case integer(ClosedRange<Int>)
  /// Every number, or one of a range.
  case number(ClosedRange<Double>?)
  /// A whole number, or a string that stands for one.
  case integerOrText(ClosedRange<Int>)
  /// The smallest and the largest number.
  case numberRange
  /// Two whole numbers of a range.
  case pair(ClosedRange<Int>)
  /// A string of so many characters (Unicode scalars).
  case text(ClosedRange<Int>)
  /// One of these values.
  case choice([JSONValue])
  /// A list of elements.
  case list(ConfigurationShape)
  /// An element of the shape, or a list of such elements.
  case oneOrMore(ConfigurationShape)
  case object([Member])
  /// `null`, or this.
  case nullOr(ConfigurationShape)
  /// `false`, or this.
  case falseOr(ConfigurationShape)
  /// An object whose keys are names that the user chooses.
  case members(ConfigurationShape)
  /// Any JSON.
  case any

  /// A key of an object.
  package struct Member: Sendable, Equatable {
    package let name: String
    package let shape: ConfigurationShape
    /// Whether the key must be given.
    package let isRequired: Bool
    /// The value of the key when it is left out; nil when it then has none.
    package let `default`: JSONValue?
  }

  /// The words for a sentence: "expected a string".
  var expectation: String {
    switch self {
    case .bool: "true or false"
    case .integer(let range): "a whole number, \(range.lowerBound)…\(range.upperBound)"
    case .integerOrText(let range): ConfigurationShape.integer(range).expectation
    case .number(let range?):
      "a number, \(JSONValue(number: range.lowerBound).written)…\(JSONValue(number: range.upperBound).written)"
    case .number(nil): "a number"
    case .numberRange: "a list of two numbers, the smaller first"
    case .pair(let range): "a list of two whole numbers, \(range.lowerBound)…\(range.upperBound)"
    case .text: "a string"
    case .choice(let values):
      values.map(\.written).joined(separator: " or ")
    case .list: "a list"
    case .oneOrMore(let shape): "\(shape.expectation) or a list"
    case .nullOr(let shape): "null or \(shape.expectation)"
    case .falseOr(let shape): "false or \(shape.expectation)"
    case .object, .members: "an object"
    case .any: "a value"
    }
  }
}

extension ConfigurationRule {
  /// A rule for JSON of one kind: `parse` gives nil for every other.
  package init(
    shape: ConfigurationShape, parse: @escaping @Sendable (JSONValue) throws(ConfigurationProblem) -> Value?,
    write: @escaping @Sendable (Value) -> JSONValue?
  ) {
    self.init(
      shape: shape,
      read: { json, _, path, errors in
        do throws(ConfigurationProblem) {
          if let value = try parse(json) { return value }
          errors.append(path.error("expected \(shape.expectation), found \(json.kind)"))
        } catch {
          errors.append(path.error(error.problem, hint: error.hint))
        }
        return nil
      },
      write: write)
  }

  /// A string that `parse` makes a value of.
  package static func text(
    _ lengths: ClosedRange<Int>,
    parse: @escaping @Sendable (String) throws(ConfigurationProblem) -> Value,
    write: @escaping @Sendable (Value) -> String
  ) -> Self {
    ConfigurationRule(
      shape: .text(lengths),
      parse: { json throws(ConfigurationProblem) in
        guard case .string(let text) = json else { return nil }
        guard !text.isEmpty || lengths.contains(0) else {
          throw ConfigurationProblem("must not be empty", hint: "leave the key out instead")
        }
        guard lengths.contains(text.unicodeScalars.count) else {
          throw ConfigurationProblem("must not be longer than \(lengths.upperBound) characters")
        }
        guard !text.unicodeScalars.contains(where: \.isControl) else {
          throw ConfigurationProblem("\(Excerpt(text)) contains a control character")
        }
        return try parse(text)
      },
      write: { .string(write($0)) })
  }
}

extension ConfigurationRule where Value: CustomStringConvertible & Sendable {
  /// A string that is `what`, for example "a UUID".
  static func text(
    _ lengths: ClosedRange<Int>, _ parse: @escaping @Sendable (String) -> Value?, _ what: String,
    hint: String? = nil
  ) -> Self {
    .text(
      lengths,
      parse: { text throws(ConfigurationProblem) in
        guard let value = parse(text) else {
          throw ConfigurationProblem("\(Excerpt(text)) is not \(what)", hint: hint)
        }
        return value
      },
      write: \.description)
  }
}

/// A mistake in a value, without its place.
package struct ConfigurationProblem: Error {
  package let problem: String
  /// What to do about the problem; nil where that is not known.
  package let hint: String?

  /// - Parameter problem: for a sentence after the key: "0 is below 20".
  package init(_ problem: String, hint: String? = nil) {
    self.problem = problem
    self.hint = hint
  }
}

extension ConfigurationRule<Bool> {
  package static var bool: Self {
    ConfigurationRule(
      shape: .bool,
      parse: { if case .bool(let value) = $0 { value } else { nil } }, write: JSONValue.bool)
  }
}

extension ConfigurationRule<Int> {
  /// A whole number in a range.
  package static func integer(_ range: ClosedRange<Int>) -> Self {
    ConfigurationRule(
      shape: .integer(range),
      parse: { json throws(ConfigurationProblem) in
        if let value = json.wholeNumber {
          if range.contains(value) { return value }
          let problem = value < range.lowerBound ? "below \(range.lowerBound)" : "above \(range.upperBound)"
          throw ConfigurationProblem("\(value) is \(problem)")
        }
        switch json {
        case .number(let value):
          throw ConfigurationProblem("\(value) is not \(ConfigurationShape.integer(range).expectation)")
        case .string(let text) where Int(text) != nil:
          throw ConfigurationProblem("expected a number, found a string", hint: "write it without quotes")
        case .null, .bool, .integer, .string, .array, .object: return nil
        }
      },
      write: JSONValue.integer)
  }
}

extension ConfigurationRule<String> {
  /// Any text on one line.
  package static func text(longest: Int, mayBeEmpty: Bool = false) -> Self {
    .text((mayBeEmpty ? 0 : 1)...longest, parse: { $0 }, write: { $0 })
  }

  /// A string in which `problem` finds none.
  package static func text(
    longest: Int, problem: @escaping @Sendable (String) -> ConfigurationProblem?
  ) -> Self {
    .text(
      1...longest,
      parse: { text throws(ConfigurationProblem) in
        if let problem = problem(text) { throw problem }
        return text
      },
      write: { $0 })
  }
}

extension ConfigurationRule where Value: RawRepresentable<String> & CaseIterable & Sendable {
  /// One of the words that the type's cases are.
  package static var choice: Self { .choice(instead: [:]) }

  /// - Parameter instead: what is to be said of words that users may expect, besides "did you mean?".
  static func choice(instead: [String: String]) -> Self { .choice(instead: instead) { .string($0.rawValue) } }
}

extension ConfigurationRule where Value: CaseIterable & Sendable {
  /// One of the words, or other JSON, that stand for the type's cases.
  package static func choice(
    instead: [String: String] = [:], _ word: @escaping @Sendable (Value) -> JSONValue
  ) -> Self {
    let words = Value.allCases.map(word)
    let shape = ConfigurationShape.choice(words)
    return ConfigurationRule(
      shape: shape,
      parse: { json throws(ConfigurationProblem) in
        if let value = Value.allCases.first(where: { word($0) == json }) { return value }
        switch json {
        case .string(let text):
          let near = nearest(to: text, among: words.compactMap(\.text)).map { "did you mean \($0)?" }
          throw ConfigurationProblem(
            "expected \(shape.expectation), found \(Excerpt(text))", hint: instead[text] ?? near)
        case .integer(let number) where words.contains(.string("\(number)")):
          throw ConfigurationProblem(
            "expected \(shape.expectation), found a number", hint: "write it in quotes")
        case .null, .bool, .integer, .number, .array, .object: return nil
        }
      },
      write: word)
  }
}

extension ConfigurationRule {
  /// A key that has no default: nil when it is left out.
  package static func optional<Wrapped>(_ rule: ConfigurationRule<Wrapped>) -> Self where Value == Wrapped? {
    ConfigurationRule(
      shape: rule.shape,
      read: { json, current, path, errors in rule.read(json, current ?? nil, path, &errors) },
      write: { $0.flatMap(rule.write) })
  }

  /// This rule, for a key of a profile that is written only where its value is not `usual`, which it has when it is left out. The
  /// rule need not accept `usual`: a size of 0 is none.
  func leftOut(at usual: Value) -> Self where Value: Equatable & Sendable {
    ConfigurationRule(shape: shape, read: read, write: { $0 == usual ? nil : write($0) })
  }

  /// A list, whose elements `check` counts, and compares with one another.
  package static func list<Element>(
    of rule: ConfigurationRule<Element>,
    check: @escaping @Sendable ([Element], ConfigurationPath) -> [ConfigurationError] = { _, _ in [] }
  ) -> Self where Value == [Element] {
    ConfigurationRule(
      shape: .list(rule.shape),
      read: { json, _, path, errors in
        guard case .array(let elements) = json else {
          errors.append(path.error("expected a list, found \(json.kind)"))
          return nil
        }
        let values = elements.enumerated().compactMap { index, element in
          rule.read(element, nil, path.index(index), &errors)
        }
        // The indices would be wrong with an element missing.
        if values.count == elements.count { errors += check(values, path) }
        return values
      },
      write: { .array($0.compactMap(rule.write)) })
  }
}
