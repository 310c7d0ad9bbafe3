extension RecordCodec {
  /// Appends the bytes of `value`. Hidden flags are set according to the fields that are present; other hidden fields
  /// are zero. If several fields have the same name, the first one that can hold the value is used.
  func encode(_ value: Value, to bytes: inout [UInt8]) throws(CodecError) {
    guard case .record(let values) = value else { throw .kind(expected: "a record", found: value.kind) }
    guard values.count == names.count else {
      throw .kind(expected: "a record of \(names.count) fields", found: "one of \(values.count)")
    }
    var candidates: [[Content]] = []
    for slot in names.indices {
      do throws(CodecError) {
        candidates.append(try contents(of: alternatives[slot], for: values[slot]))
      } catch {
        throw .field(names[slot], error)
      }
    }
    let (bits, used) = try choose(from: candidates)
    for (index, field) in fields.enumerated() {
      let isPresent = field.condition.map { $0.holds(bits[$0.flags]) } ?? true
      if let container = field.container {
        // Another field may need other bits.
        guard field.slot == nil || isPresent == (used[index] != nil),
          used[index].map({ field.scalar.holds($0, in: bits[container]) }) ?? true
        else { throw .presence }
      } else if field.slot == nil {
        if isPresent { field.scalar.append(bits[index], to: &bytes) }
      } else {
        guard isPresent == (used[index] != nil) else { throw .presence }
        bytes += used[index] ?? []
      }
    }
  }

  /// A value, encoded as one of the fields that have its name.
  private struct Content {
    let index: Int
    let bytes: [UInt8]
  }

  /// The ways to encode `value`, in the order of the fields; none if it is absent.
  private func contents(of alternatives: [Int], for value: Value?) throws(CodecError) -> [Content] {
    guard let value else {
      guard alternatives.allSatisfy({ fields[$0].condition != nil }) else { throw .missingField }
      return []
    }
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
        contents.append(Content(index: index, bytes: bytes))
      } catch {
        problem = error
      }
    }
    guard !contents.isEmpty else { throw problem }
    return contents
  }

  /// The flags that the fields need, by the flag fields' indices, and the fields that are used, by theirs. Hidden flags
  /// are clear until a field needs one; that may rule out what was chosen for another field, which is then chosen anew.
  private func choose(
    from candidates: [[Content]]
  ) throws(CodecError) -> (bits: [UInt64], used: [[UInt8]?]) {
    var bits = [UInt64](repeating: 0, count: fields.count)
    for content in candidates.joined() where fields[content.index].isFlags {
      bits[content.index] = fields[content.index].scalar.bits(content.bytes, at: 0)
    }
    func set(_ flags: UInt64, of condition: Condition) {
      if fields[condition.flags].slot == nil { bits[condition.flags] |= flags }
    }
    while true {
      let before = bits
      var used = [[UInt8]?](repeating: nil, count: fields.count)
      for slot in names.indices {
        if candidates[slot].isEmpty {
          for index in alternatives[slot] {
            if let condition = fields[index].condition { set(condition.flagAgainst(bits), of: condition) }
          }
        } else if let content = candidates[slot].first(where: { canUse($0.index, bits) }) {
          used[content.index] = content.bytes
          if let container = fields[content.index].container {
            bits[container] |= fields[content.index].scalar.bits(content.bytes, at: 0)
          }
          if let condition = fields[content.index].condition { set(condition.expected, of: condition) }
        } else {
          throw .presence
        }
      }
      if bits == before { return (bits, used) }
    }
  }

  /// Whether a field can be present: visible flags are as the value has them, hidden ones can still be set.
  private func canUse(_ index: Int, _ bits: [UInt64]) -> Bool {
    guard let condition = fields[index].condition else { return true }
    let set = bits[condition.flags]
    return fields[condition.flags].slot == nil
      ? set & condition.mask & ~condition.expected == 0 : condition.holds(set)
  }
}

extension RecordCodec.Condition {
  /// The flag that is to be set so that a field with this condition is absent; 0: it is, or none helps.
  fileprivate func flagAgainst(_ bits: [UInt64]) -> UInt64 {
    let clear = mask & ~expected
    return holds(bits[flags]) ? clear & (~clear &+ 1) : 0
  }
}
