import GATT
import JSON

// Rules for numbers, UUIDs, and for lists and objects of what the user names.

extension ConfigurationRule<Double> {
  /// A number, in a range if there is one.
  static func number(_ range: ClosedRange<Double>? = nil) -> Self {
    ConfigurationRule(
      shape: .number(range),
      parse: { json throws(ConfigurationProblem) in
        guard let number = json.double else {
          guard case .string(let text) = json, Double(text) != nil else { return nil }
          throw ConfigurationProblem("expected a number, found a string", hint: "write it without quotes")
        }
        guard let range, !range.contains(number) else { return number }
        let (limit, side) =
          number < range.lowerBound ? (range.lowerBound, "below") : (range.upperBound, "above")
        throw ConfigurationProblem(
          "\(JSONValue(number: number).written) is \(side) \(JSONValue(number: limit).written)")
      },
      write: JSONValue.init(number:))
  }
}

extension ConfigurationRule<ClosedRange<Double>> {
  /// `[20, 65535]`: the smallest and the largest number.
  static var numberRange: Self {
    .pair(
      shape: .numberRange, hint: "example: [20, 65535]", element: \.double,
      make: { $0 <= $1 ? $0...$1 : nil },
      write: { [JSONValue(number: $0.lowerBound), JSONValue(number: $0.upperBound)] })
  }
}

extension ConfigurationRule<Range<Int>> {
  /// `[0, 7]`: the lowest bit, and how many there are.
  static var bits: Self {
    let range = 0...64
    return .pair(
      shape: .pair(range), hint: "example: [0, 7], the lowest bit and how many there are",
      element: \.wholeNumber,
      make: { range.contains($0) && range.contains($1) ? $0..<$0 + $1 : nil },
      write: { [.integer($0.lowerBound), .integer($0.count)] })
  }
}

extension ConfigurationRule {
  /// A list of two numbers.
  /// - Parameter make: makes the value of both; nil: they do not fit.
  private static func pair<Number>(
    shape: ConfigurationShape, hint: String, element: @escaping @Sendable (JSONValue) -> Number?,
    make: @escaping @Sendable (Number, Number) -> Value?, write: @escaping @Sendable (Value) -> [JSONValue]
  ) -> Self {
    ConfigurationRule(
      shape: shape,
      parse: { json throws(ConfigurationProblem) in
        guard case .array(let elements) = json else { return nil }
        let numbers = elements.compactMap(element)
        guard numbers.count == 2, elements.count == 2, let value = make(numbers[0], numbers[1]) else {
          throw ConfigurationProblem("expected \(shape.expectation)", hint: hint)
        }
        return value
      },
      write: { .array(write($0)) })
  }
}

extension ConfigurationRule<BluetoothUUID> {
  /// A UUID of 4 or 8 digits, perhaps behind `0x`, or of 36 characters, in either case.
  package static var uuid: Self {
    .text(
      1...36, BluetoothUUID.init, "a UUID", hint: "examples: 180d, 0000180d-0000-1000-8000-00805f9b34fb")
  }
}

extension ConfigurationRule<Int> {
  /// The number of a company, which is mostly written in hexadecimal: 1177, `"0x0499"`.
  static var company: Self {
    let number = integer(0...0xFFFF)
    return ConfigurationRule(
      shape: .integerOrText(0...0xFFFF),
      read: { json, current, path, errors in
        guard case .string(let text) = json else { return number.read(json, current, path, &errors) }
        let digits = text.dropFirst(2)
        if text.hasPrefix("0x"), digits.allSatisfy(\.isHexDigit), let value = UInt16(digits, radix: 16) {
          return Int(value)
        }
        errors.append(
          path.error("\(Excerpt(text)) is not the number of a company", hint: "examples: 1177, \"0x0499\""))
        return nil
      },
      write: number.write)
  }

  /// A passkey of Bluetooth pairing (Core Specification Vol 3, Part H, 2.3.5.3).
  package static var passkey: Self { .integer(0...999_999) }
}

extension ConfigurationRule<[UInt8]> {
  /// Two digits for each byte.
  package static var hexadecimal: Self {
    .text(
      0...1024,
      parse: { text throws(ConfigurationProblem) in
        guard let bytes = Hexadecimal.bytes(text) else {
          throw ConfigurationProblem(
            "\(Excerpt(text)) is not hexadecimal", hint: "two digits make a byte: 05, 0a1f")
        }
        return bytes
      },
      write: { Hexadecimal.text($0) })
  }

  /// A key of AES-128.
  static var encryptionKey: Self {
    ConfigurationRule(
      shape: .text(32...32),
      parse: { json throws(ConfigurationProblem) in
        guard case .string(let text) = json else { return nil }
        guard let key = encryptionKey(text) else {
          // The key is a secret: it is not shown.
          throw ConfigurationProblem("a key has 32 hexadecimal digits")
        }
        return key
      },
      write: { .string(Hexadecimal.text($0)) })
  }

  /// The bytes of the key; nil if the text is none.
  static func encryptionKey(_ text: String) -> [UInt8]? {
    Hexadecimal.bytes(text).flatMap { $0.count == 16 ? $0 : nil }
  }
}

extension ConfigurationRule<JSONValue> {
  /// Anything; it is checked later.
  package static var any: Self {
    ConfigurationRule(shape: .any, read: { json, _, _, _ in json }, write: { $0 })
  }
}

/// A member of an object whose keys the user chooses.
package struct Named<Value> {
  package let name: String
  package let value: Value

  package init(_ name: String, _ value: Value) {
    self.name = name
    self.value = value
  }
}

extension Named: Sendable where Value: Sendable {}
extension Named: Equatable where Value: Equatable {}

extension ConfigurationRule {
  /// An object whose keys are names that the user chooses, in the order of the document.
  /// - Parameter problem: what is wrong with a name; nil: nothing.
  package static func members<Element>(
    of rule: ConfigurationRule<Element>,
    problem: @escaping @Sendable (String) -> ConfigurationProblem? = { _ in nil }
  ) -> Self where Value == [Named<Element>] {
    ConfigurationRule(
      shape: .members(rule.shape),
      read: { json, _, path, errors in
        guard case .object(let object) = json else {
          errors.append(path.error("expected an object, found \(json.kind)"))
          return nil
        }
        return object.members.compactMap { member in
          if let problem = problem(member.name) {
            errors.append(path.name(member.name).error(problem.problem, hint: problem.hint))
          }
          return rule.read(member.value, nil, path.key(member.name), &errors).map { Named(member.name, $0) }
        }
      },
      write: { members in .object(of: members.map { ($0.name, rule.write($0.value)) }) })
  }

  /// An element, or a list of elements; see ``list(of:check:)``.
  static func oneOrMore<Element>(
    _ rule: ConfigurationRule<Element>,
    check: @escaping @Sendable ([Element], ConfigurationPath) -> [ConfigurationError] = { _, _ in [] }
  ) -> Self where Value == [Element] {
    let list = ConfigurationRule.list(of: rule, check: check)
    return ConfigurationRule(
      shape: .oneOrMore(rule.shape),
      read: { json, _, path, errors in
        if case .array = json { return list.read(json, nil, path, &errors) }
        guard let value = rule.read(json, nil, path, &errors) else { return nil }
        errors += check([value], path)
        return [value]
      },
      write: { $0.count == 1 ? rule.write($0[0]) : list.write($0) })
  }
}
