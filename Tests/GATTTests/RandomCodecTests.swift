import TestSupport
import Testing

@testable import GATT

/// Random codecs and values. A failure reports the seed that reproduces it.
@Suite struct RandomCodecTests {
  static let rounds = 3000

  @Test func encodedValueIsDecodedUnchanged() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SplitMix64(state: seed)
    for round in 0..<Self.rounds {
      let (description, value) = Self.example(&random)
      let codec = try Codec(description)
      let bytes = try codec.encode(value)
      let decoded = try codec.decode(bytes)
      #expect(decoded == value, "seed \(seed), round \(round): \(description)")
      #expect(try codec.encode(decoded) == bytes, "seed \(seed), round \(round): \(description)")
    }
  }

  /// Any bytes from a peripheral are an error, or a value that decodes to the same after being encoded.
  @Test func anyBytesAreAnErrorOrAValue() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = SplitMix64(state: seed)
    var decodedCount = 0
    for round in 0..<Self.rounds {
      let (description, value) = Self.example(&random)
      let codec = try Codec(description)
      // As long as a value of this codec half of the time, so that there is something to decode.
      let length =
        Bool.random(using: &random) ? try codec.encode(value).count : Int.random(in: 0...30, using: &random)
      let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
      guard let decoded = try? codec.decode(bytes) else { continue }
      decodedCount += 1
      // Numbers that the enumeration does not have cannot be encoded.
      guard let encoded = try? codec.encode(decoded) else {
        #expect(Self.hasWords(description), "seed \(seed), round \(round): \(description) \(bytes)")
        continue
      }
      let again = try codec.decode(encoded)
      // Compared as text, because NaN is not equal to itself.
      #expect("\(again)" == "\(decoded)", "seed \(seed), round \(round): \(description) \(bytes)")
    }
    #expect(decodedCount > Self.rounds / 10, "seed \(seed)")
  }

  private static func hasWords(_ description: Codec.Description) -> Bool {
    switch description {
    case .scalar(let scalar): !scalar.values.isEmpty
    case .record(let fields): fields.contains { !$0.scalar.values.isEmpty }
    case .flags: true
    case .advertised: false
    case .list(let element): hasWords(element)
    }
  }

  // MARK: Generators

  private typealias Example = (Codec.Description, Value)

  private static func example(_ random: inout SplitMix64) -> Example {
    switch Int.random(in: 0..<5, using: &random) {
    case 0:
      let scalar = scalar(&random, isFixed: false)
      return (.scalar(scalar), value(of: scalar, &random))
    case 1:
      let scalar = scalar(&random, isFixed: true)
      return (.list(of: .scalar(scalar)), list(of: scalar, &random))
    case 2:
      let fields = fields(&random, mayTakeRemainingBytes: true)
      return (.record(fields), record(fields, &random))
    case 3:
      let names = Dictionary(uniqueKeysWithValues: (0..<12).map { ($0, "bit\($0)") })
      let set = names.filter { _ in Bool.random(using: &random) }.sorted { $0.key < $1.key }
      return (.flags(.uint16, names), .list(set.map { .text($0.value) }))
    default:
      let fields = fields(&random, mayTakeRemainingBytes: false)
      let count = Int.random(in: 0...3, using: &random)
      return (.list(of: .record(fields)), .list((0..<count).map { _ in record(fields, &random) }))
    }
  }

  private static func scalar(_ random: inout SplitMix64, isFixed: Bool) -> Codec.Scalar {
    let types = Codec.ScalarType.allCases.filter {
      !isFixed || ![.decimal, .utf8, .bytes, .bits].contains($0)
    }
    let type = types.randomElement(using: &random) ?? .uint8
    let endian: Codec.Endian = Bool.random(using: &random) ? .little : .big
    switch (type, Int.random(in: 0..<5, using: &random)) {
    case (.uint8, 0), (.int8, 0), (.uint16, 0), (.int32, 0):
      return Codec.Scalar(type, endian: endian, values: [0: "zero", 1: "one", 100: "hundred"])
    case (.uint8, 1), (.int8, 1), (.uint16, 1), (.int16, 1), (.uint24, 1), (.sint24, 1), (.uint32, 1),
      (.int32, 1):
      let scale = [0.01, 0.1, 0.5, 0.0009765625, 1.0 / 3, -0.2, 7, 1e-9].randomElement(using: &random)
      let offset = [nil, -40, 0.1, 273.15].randomElement(using: &random) ?? nil
      return Codec.Scalar(type, scale: scale, offset: offset, endian: endian)
    case (.uint8, 2), (.uint16, 2), (.uint24, 2), (.uint32, 2), (.uint64, 2):
      let low = Int.random(in: 0...6, using: &random)
      return Codec.Scalar(type, endian: endian, bits: low..<Int.random(in: low + 1...8, using: &random))
    case (.utf8, 0), (.bytes, 0):
      return Codec.Scalar(type, size: 9)
    case (.bool, 0), (.bool, 1):
      let bit = Int.random(in: 0...7, using: &random)
      return Codec.Scalar(
        type, endian: endian, bits: bit..<bit + 1, isInverted: .random(using: &random))
    case (.bits, _):
      return .bits(
        rows: Int.random(in: 1...6, using: &random), columns: Int.random(in: 1...8, using: &random))
    default:
      return Codec.Scalar(type, endian: endian)
    }
  }

  /// Flags, fixed fields, fields with conditions and alternatives, and one that takes all remaining bytes.
  private static func fields(_ random: inout SplitMix64, mayTakeRemainingBytes: Bool) -> [Codec.Field] {
    let isHidden = Bool.random(using: &random)
    var fields = [Codec.Field("flags", .uint16, isHidden: isHidden)]
    if isHidden, Bool.random(using: &random) {
      let low = Int.random(in: 0...8, using: &random)
      fields.append(Codec.Field("part", Codec.Scalar(.uint8, bits: low..<low + 3), of: "flags"))
      fields.append(
        Codec.Field("bit", Codec.Scalar(.bool, bits: low + 1..<low + 2), of: "flags", if: ["flags.1"]))
    }
    for index in 0..<Int.random(in: 1...5, using: &random) {
      let flag = Codec.Flag(field: "flags", bit: Int.random(in: 0..<5, using: &random))
      let name = "f\(index)"
      let scalar = scalar(&random, isFixed: true)
      switch Int.random(in: 0..<5, using: &random) {
      case 0: fields.append(Codec.Field(name, scalar, if: [flag]))
      case 1: fields.append(Codec.Field(name, scalar, unless: [flag]))
      case 2:
        fields.append(Codec.Field(name, .uint8, unless: [flag]))
        fields.append(Codec.Field(name, .uint16, if: [flag]))
      case 3: fields.append(Codec.Field("h\(index)", scalar, isHidden: true, if: [flag]))
      default: fields.append(Codec.Field(name, scalar))
      }
    }
    fields.append(Codec.Field("last", .uint8))
    if mayTakeRemainingBytes {
      switch Int.random(in: 0..<5, using: &random) {
      case 0: fields.append(Codec.Field("text", .utf8))
      case 1: fields.append(Codec.Field("list", scalar(&random, isFixed: true), isRepeated: true))
      case 2: fields.append(Codec.Field("list", .int16, isRepeated: true, if: ["flags.0"]))
      default: break
      }
    }
    return fields
  }

  /// A random record that agrees with random flags.
  private static func record(_ fields: [Codec.Field], _ random: inout SplitMix64) -> Value {
    let flags = Int.random(in: 0...0xFFFF, using: &random)
    var names: [String] = []
    var values: [Value?] = []
    for field in fields where !field.isHidden {
      if !names.contains(field.name) {
        names.append(field.name)
        values.append(nil)
      }
      let isPresent =
        field.requiresSet.allSatisfy { flags >> $0.bit & 1 == 1 }
        && field.requiresClear.allSatisfy { flags >> $0.bit & 1 == 0 }
      guard isPresent else { continue }
      values[values.count - 1] =
        if field.name == "flags" {
          .integer(flags)
        } else if field.container != nil, let bits = field.scalar.bits {
          field.scalar.type == .bool
            ? .bool(flags >> bits.lowerBound & 1 == 1) : .integer(flags >> bits.lowerBound & 7)
        } else if field.isRepeated {
          list(of: field.scalar, &random)
        } else {
          value(of: field.scalar, &random)
        }
    }
    return .record(values)
  }

  private static func list(of scalar: Codec.Scalar, _ random: inout SplitMix64) -> Value {
    .list((0..<Int.random(in: 0...4, using: &random)).map { _ in value(of: scalar, &random) })
  }

  private static func value(of scalar: Codec.Scalar, _ random: inout SplitMix64) -> Value {
    switch scalar.type {
    case .bool: return .bool(.random(using: &random))
    case .utf8:
      let texts = ["", "a", "°C", scalar.size == 0 ? "a longer text than fits" : "9 letters"]
      return .text(texts.randomElement(using: &random) ?? "")
    case .bytes:
      return .bytes(
        (0..<(scalar.size == 0 ? Int.random(in: 0...9, using: &random) : scalar.size)).map { _ in
          .random(in: 0...255, using: &random)
        })
    case .bits:
      let rows = (0..<scalar.rows).map { _ in
        String((0..<scalar.columns).map { _ in Bool.random(using: &random) ? "#" : "." })
      }
      return .text(rows.joined(separator: "/"))
    case .sfloat: return .number([0, 36.4, -0.1, 2.045e10, .infinity].randomElement(using: &random) ?? 0)
    case .float: return .number([0, 36.4, -12.345, 1e100, -.infinity].randomElement(using: &random) ?? 0)
    case .float32: return .number([0, 21.3, -0.1, 1e30, .infinity].randomElement(using: &random) ?? 0)
    case .float64, .decimal: return .number(.random(in: -1e9...1e9, using: &random))
    case .uint8, .uint16, .uint24, .uint32, .uint64, .int8, .int16, .sint24, .int32, .int64:
      if let word = scalar.values.values.sorted().randomElement(using: &random) { return .text(word) }
      if let bits = scalar.bits { return .integer(.random(in: 0..<1 << bits.count, using: &random)) }
      let raw = integer(scalar.type, &random)
      // A value that the bytes can hold, decoded by the codec itself: other tests check its decoding.
      guard scalar.scale != nil || scalar.offset != nil else { return .integer(raw) }
      let bytes =
        (try? Codec(.scalar(Codec.Scalar(scalar.type, endian: scalar.endian))).encode(.integer(raw))) ?? []
      return (try? Codec(.scalar(scalar)).decode(bytes)) ?? .number(.nan)
    }
  }

  private static func integer(_ type: Codec.ScalarType, _ random: inout SplitMix64) -> Int {
    let range = type.integers ?? 0...0
    return [range.lowerBound, range.upperBound, Int.random(in: range, using: &random)]
      .randomElement(using: &random) ?? 0
  }
}
