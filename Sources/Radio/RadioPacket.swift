import GATT
import JSON

/// What a receiver's program says of one packet, or any other line that it prints.
package struct RadioPacket: Sendable, Equatable {
  /// Who has sent it; nil: the line does not say. ``RadioReceivers`` then names the receiver.
  package var sender: RadioSender?
  /// The sender's ms since its start; nil: the line does not say.
  package var time: UInt32?
  /// What was sent, as a message of a program: `temp:21`, `21`, or any text. UTF-8 without control characters.
  package var message: [UInt8]
  /// The name of the value in ``message``, if the packet has it apart from the value: `player 2` of `player 2:25`.
  package private(set) var valueName: [UInt8]?

  /// Reads a line without its end; nil if nothing can be read of it.
  ///
  /// - `{"t":325,"s":-1142702066,"n":"temp","v":27}`: `radio.writeReceivedPacketToSerial`, which escapes nothing in `n`; or
  ///   these members in any order.
  /// - `vopez,temp,21`, `vopez temp 21`, `vopez:21`: the sender's name, and what it has sent.
  /// - Anything else: a message without a sender.
  package init?(_ line: some BidirectionalCollection<UInt8>) {
    let text = Array(line).trimmed[...]
    guard !text.isEmpty, String(validating: text, as: UTF8.self)?.hasControlCharacters == false else {
      return nil
    }
    message = Array(text)
    if text.first == UInt8(ascii: "{") {
      guard let packet = Self.printed(text) ?? Self.members(text) else {
        // A packet of bytes has no values, and a damaged one is none.
        if Self.beginsAsPrinted(text) { return nil }
        return
      }
      self = packet
    }
    takeName()
    guard !message.isEmpty else { return nil }
  }

  /// Whether it is what a gateway has sent to a micro:bit, `zotut>servo:90`, and this receiver has heard.
  package var isCommand: Bool {
    message.count > 6 && message[5] == UInt8(ascii: ">")
      && MicrobitName(String(decoding: message.prefix(5), as: UTF8.self)) != nil
  }

  /// Serial numbers and times have 32 bits, with or without a sign.
  fileprivate static let numbers = Int(Int32.min)...Int(UInt32.max)

  private init(_ time: Int, _ serial: Int, _ message: [UInt8]) {
    self.time = UInt32(truncatingIfNeeded: time)
    self.message = message
    // The serial number is 0 unless the sender's program has the block "radio set transmit serial number".
    if serial != 0 { sender = .serial(UInt32(truncatingIfNeeded: serial)) }
  }

  /// The form of `writeReceivedPacketToSerial`. A text may have quotes: it ends at the last one.
  private static func printed(_ line: ArraySlice<UInt8>) -> RadioPacket? {
    var rest = line
    guard rest.take(#"{"t":"#), let time = rest.takeInteger(), rest.take(#","s":"#),
      let serial = rest.takeInteger(), rest.popLast() == UInt8(ascii: "}")
    else { return nil }
    if rest.take(#","v":"#) { return isNumber(rest) ? RadioPacket(time, serial, Array(rest)) : nil }
    guard rest.take(#","n":""#) else { return nil }
    let middle = Array(#"","v":"#.utf8)
    if let end = rest.indices.last(where: { rest[$0...].starts(with: middle) }),
      isNumber(rest[(end + middle.count)...])
    {
      var packet = RadioPacket(time, serial, [])
      packet.setPair(rest[..<end], rest[(end + middle.count)...])
      return packet
    }
    guard rest.popLast() == UInt8(ascii: "\"") else { return nil }
    return RadioPacket(time, serial, Array(rest).trimmed)
  }

  /// Whether it begins as ``printed(_:)`` does: a program's own JSON may have a `t`, too.
  private static func beginsAsPrinted(_ line: ArraySlice<UInt8>) -> Bool {
    var rest = line
    guard rest.take(#"{"t":"#) else { return false }
    rest = rest.drop { $0 == UInt8(ascii: "-") || (0x30...0x39).contains($0) }
    return rest.isEmpty || rest.starts(with: #","s":"#.utf8)
  }

  /// A packet whose members are in another order, or have spaces between them, as a receiver's own program may write them.
  private static func members(_ line: ArraySlice<UInt8>) -> RadioPacket? {
    guard let json = try? JSONParser.parse(Array(line)), let serial = json["s"]?.integer else { return nil }
    let time = json["t"]?.integer
    guard numbers.contains(serial), numbers.contains(time ?? 0) else { return nil }
    let name = json["n"]?.text.map { Array($0.utf8) }
    let value = json["v"].flatMap { $0.double == nil ? nil : $0.bytes }
    // A program's own JSON may have an `s` and a `v`, too.
    guard name != nil || time != nil && value != nil else { return nil }
    var packet = RadioPacket(time ?? 0, serial, [])
    packet.setPair(name?[...] ?? [], value?[...] ?? [])
    if time == nil { packet.time = nil }
    return String(decoding: packet.message, as: UTF8.self).hasControlCharacters ? nil : packet
  }

  /// A message that begins with a micro:bit's name says who has sent it, unless its serial number does.
  private mutating func takeName() {
    guard message.count == 5 || message.count > 5 && " ,:;=|".utf8.contains(message[5]),
      let name = MicrobitName(String(decoding: message.prefix(5), as: UTF8.self)),
      sender == nil || sender?.name == name
    else { return }
    let mark = message.dropFirst(5).first.flatMap { ",|".utf8.contains($0) ? $0 : nil }
    let rest = Array(message.dropFirst(6)).trimmed
    guard !rest.isEmpty else { return }
    if sender == nil { sender = .name(name) }
    let parts = rest.split(separator: mark ?? UInt8(ascii: " "), omittingEmptySubsequences: false)
    if parts.count == 2, mark != nil || Self.isNumber(parts[1]), !rest.contains(UInt8(ascii: ":")) {
      setPair(parts[0], parts[1])
      // `vopez,7,42` is two numbers.
      if let name = valueName, Self.isNumber(name[...]) { valueName = nil }
    } else {
      message = rest
      valueName = valueName.map { Array($0.dropFirst(6)).trimmed }.flatMap { $0.isEmpty ? nil : $0 }
    }
  }

  private mutating func setPair(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
    let (name, value) = (Array(name).trimmed, Array(value).trimmed)
    let isPair = !name.isEmpty && !value.isEmpty
    valueName = isPair ? name : nil
    message = isPair ? name + [UInt8(ascii: ":")] + value : name + value
  }

  /// Whether it may be a number as JavaScript writes it.
  private static func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
    !text.isEmpty && text.allSatisfy { "+-.0123456789eE".utf8.contains($0) }
      || ["NaN", "Infinity", "-Infinity"].contains { text.elementsEqual($0.utf8) }
  }
}

extension [UInt8] {
  /// The bytes without spaces, tabs, NULs and line ends at both ends.
  fileprivate var trimmed: [UInt8] {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0 || (9...13).contains(byte) }
    guard let last = lastIndex(where: { !isBlank($0) }) else { return [] }
    return Array(self[...last].drop(while: isBlank))
  }
}

extension ArraySlice<UInt8> {
  /// Removes `text` from the beginning.
  fileprivate mutating func take(_ text: String) -> Bool {
    guard starts(with: text.utf8) else { return false }
    removeFirst(text.utf8.count)
    return true
  }

  /// Removes a whole number from the beginning: of 32 bits, with or without a sign.
  fileprivate mutating func takeInteger() -> Int? {
    let digits = prefix { $0 == UInt8(ascii: "-") || (0x30...0x39).contains($0) }
    guard let number = Int(String(decoding: digits, as: UTF8.self)),
      RadioPacket.numbers.contains(number)
    else { return nil }
    removeFirst(digits.count)
    return number
  }
}
