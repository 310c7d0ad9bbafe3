extension RecordCodec {
  /// Appends the bytes of `value`. Hidden flags are set according to the fields that are present; other hidden fields
  /// are zero. If several fields have the same name, the first one that can hold the value is used.
  func encode(_ value: Value, to bytes: inout [UInt8]) throws(CodecError) {
    guard case .record(let values) = value else { throw .kind(expected: "a record", found: value.kind) }
    guard values.count == names.count else {
      throw .kind(expected: "a record of \(names.count) fields", found: "one of \(values.count)")
    }
    var present: [[Content]] = []
    var absent: [Condition] = []
    for slot in names.indices {
      do throws(CodecError) {
        if let value = values[slot] {
          present.append(try contents(of: alternatives[slot], for: value))
        } else {
          for index in alternatives[slot] {
            guard let condition = fields[index].condition else { throw .missingField }
            absent.append(condition)
          }
        }
      } catch {
        throw .field(names[slot], error)
      }
    }
    var search = Search(present: present, absent: absent)
    guard let choice = search.choice(from: Choice(fields.count)) else { throw .presence }
    for index in fields.indices {
      if let content = choice.contents[index] {
        bytes += content
      } else if fields[index].slot == nil, choice.hasField(fields[index].condition) {
        fields[index].scalar.append(choice.bits[index], to: &bytes)
      }
    }
  }

  /// One way to encode a field.
  private struct Content {
    let index: Int
    let condition: Condition?
    let bytes: [UInt8]
    /// The field's value, if other fields may depend on its bits.
    let bits: UInt64?
  }

  /// The ways to encode `value`, in the order of the fields; at least one.
  private func contents(of alternatives: [Int], for value: Value) throws(CodecError) -> [Content] {
    var contents: [Content] = []
    var problem = CodecError.missingField
    for index in alternatives {
      let field = fields[index]
      var bytes: [UInt8] = []
      do throws(CodecError) {
        if field.isRepeated {
          try field.scalar.encodeList(value, to: &bytes)
        } else {
          try field.scalar.encode(value, to: &bytes)
        }
        let isFlags = field.scalar.isInteger && !field.isRepeated
        contents.append(
          Content(
            index: index, condition: field.condition, bytes: bytes,
            bits: isFlags ? field.scalar.bits(bytes, at: 0) : nil))
      } catch {
        problem = error
      }
    }
    guard !contents.isEmpty else { throw problem }
    return contents
  }

  /// A partial choice of the fields that are present, and the resulting flags.
  private struct Choice {
    /// By the fields' indices; nil: hidden or absent.
    var contents: [[UInt8]?]
    /// By the indices of the flag fields. Bits that are not in `known` are undecided, and 0 for now.
    var bits: [UInt64]
    private var known: [UInt64]

    init(_ count: Int) {
      contents = Array(repeating: nil, count: count)
      bits = Array(repeating: 0, count: count)
      known = bits
    }

    func hasField(_ condition: Condition?) -> Bool { condition.map { $0.holds(bits[$0.flags]) } ?? true }

    /// The choice with this field; nil if the decided flags say that it is absent.
    func with(_ content: Content) -> Choice? {
      var choice = self
      if let condition = content.condition {
        guard choice.allows(condition) else { return nil }
        choice.known[condition.flags] |= condition.mask
        choice.bits[condition.flags] |= condition.expected
      }
      choice.contents[content.index] = content.bytes
      if let bits = content.bits {
        choice.bits[content.index] = bits
        choice.known[content.index] = .max
      }
      return choice
    }

    /// The choices without the field that has this condition: one for each bit that can make it absent.
    func without(_ condition: Condition) -> [Choice] {
      guard allows(condition) else { return [self] }
      var choices: [Choice] = []
      var free = condition.mask & ~known[condition.flags]
      while free != 0 {
        let bit = free & ~(free - 1)
        free &= ~bit
        var choice = self
        choice.known[condition.flags] |= bit
        choice.bits[condition.flags] |= bit & ~condition.expected
        choices.append(choice)
      }
      return choices
    }

    private func allows(_ condition: Condition) -> Bool {
      (bits[condition.flags] ^ condition.expected) & condition.mask & known[condition.flags] == 0
    }
  }

  /// Searches for flags that match all fields.
  private struct Search {
    /// Fields without alternatives first, as the others depend on their flags.
    private let present: [[Content]]
    private let absent: [Condition]
    /// The limit: with many alternatives that do not fit, the search would take too long.
    private var attempts = 1000

    init(present: [[Content]], absent: [Condition]) {
      self.present = present.filter { $0.count == 1 } + present.filter { $0.count > 1 }
      self.absent = absent
    }

    mutating func choice(from choice: Choice, step: Int = 0) -> Choice? {
      guard step < present.count + absent.count else { return choice }
      guard attempts > 0 else { return nil }
      attempts -= 1
      let next =
        step < present.count
        ? present[step].compactMap(choice.with) : choice.without(absent[step - present.count])
      for choice in next {
        if let found = self.choice(from: choice, step: step + 1) { return found }
      }
      return nil
    }
  }
}
