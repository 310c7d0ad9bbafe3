import GATT
import Glibc
import JSON

// Strings with a syntax, for which the JSON schema has regular expressions.

extension ConfigurationRule<DeviceID> {
  /// A name of a device in topics.
  package static var deviceID: Self {
    .text(
      1...TopicWord.longest,
      parse: { text throws(ConfigurationProblem) in
        do throws(DeviceID.Problem) {
          return try DeviceID(text)
        } catch {
          switch error {
          case .characters: throw .characters(text)
          case .reserved: throw ConfigurationProblem("\(Excerpt(text)) is reserved: choose another id")
          }
        }
      },
      write: \.description)
  }
}

extension ConfigurationRule<GatewayID> {
  /// A name of a gateway in topics.
  package static var gatewayID: Self {
    .text(
      1...TopicWord.longest,
      parse: { text throws(ConfigurationProblem) in
        guard let id = GatewayID(text) else { throw .characters(text) }
        return id
      },
      write: \.description)
  }
}

extension ConfigurationProblem {
  fileprivate static func characters(_ text: String) -> ConfigurationProblem {
    ConfigurationProblem(
      "\(Excerpt(text)) is not a valid id",
      hint: TopicWord.similar(to: text).map { "try \($0)" }
        ?? "allowed are letters in lower case, digits, - and _")
  }
}

extension ConfigurationRule<BluetoothAddress> {
  /// A Bluetooth address, in either case: `C5:A1:B2:C3:D4:E5`; or a sender by radio.
  package static var address: Self {
    .text(1...18, { BluetoothAddress($0) }, "a Bluetooth address", hint: "example: C5:A1:B2:C3:D4:E5")
  }
}

extension ConfigurationRule<Configuration.MQTT.Host> {
  /// A broker in a list: the port follows a colon, an IPv6 address with a port is in brackets.
  static var hostAndPort: Self {
    .text(
      1...255, Configuration.MQTT.Host.init(parsing:), "a host name or address, with or without a port",
      hint: "examples: broker-1.local, broker-2.local:8883, [fd00::1]:1883")
  }
}

extension Configuration.MQTT.Host {
  fileprivate init?(parsing text: String) {
    if ConfigurationRule<String>.isIPv6(text) {
      self.init(text)
      return
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let name = parts.dropLast(parts.count > 1 ? 1 : 0).joined(separator: ":")
    let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
    let host = isBracketed ? String(name.dropFirst().dropLast()) : name
    guard isBracketed ? ConfigurationRule<String>.isIPv6(host) : Self.isName(host) else { return nil }
    if parts.count == 1 {
      self.init(host)
      return
    }
    guard let port = UInt16(parts[parts.count - 1]), port > 0 else { return nil }
    self.init(host, port: Int(port))
  }

  private static func isName(_ text: String) -> Bool {
    !text.isEmpty && !text.contains { $0.isWhitespace || "/[]:".contains($0) }
  }
}

extension ConfigurationRule<String> {
  /// The name of a device or of an area, for users.
  package static var label: Self {
    .text(longest: 128) { text in
      text.unicodeScalars.allSatisfy(\.isBlank)
        ? ConfigurationProblem(
          "\(Excerpt(text)) has no visible character", hint: "leave the key out instead") : nil
    }
  }

  /// An adapter as BlueZ names it.
  package static var adapter: Self {
    .text(longest: 16) { text in
      let digits = text.dropFirst(3).utf8
      let isName =
        text.hasPrefix("hci") && !digits.isEmpty && digits.allSatisfy { (0x30...0x39).contains($0) }
      return isName ? nil : ConfigurationProblem("\(Excerpt(text)) is not an adapter", hint: "example: hci0")
    }
  }

  /// A name or an address of a host.
  static var host: Self {
    // A name or an IPv4 address has no colon, an IPv6 address has two at least.
    .text(longest: 255) { text in
      func problem(_ hint: String) -> ConfigurationProblem {
        ConfigurationProblem("\(Excerpt(text)) is not a host name or address", hint: hint)
      }
      if text.utf8.contains(UInt8(ascii: "/")) {
        return problem("the host alone, without mqtt:// and path; the port goes to mqtt.port")
      }
      if text.contains(where: \.isWhitespace) { return problem("remove the white space") }
      if text.utf8.contains(where: { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "]") }) {
        return problem("an IPv6 address without brackets; the port goes to mqtt.port")
      }
      switch text.utf8.count(where: { $0 == UInt8(ascii: ":") }) {
      case 0: return nil
      case 1: return problem("the host alone; the port goes to mqtt.port")
      case _: return isIPv6(text) ? nil : problem("a name has no colon; the port goes to mqtt.port")
      }
    }
  }

  /// An IPv4 or IPv6 address of this machine.
  static var ipAddress: Self {
    .text(
      1...45, { isAddress($0, AF_INET) || isAddress($0, AF_INET6) ? $0 : nil }, "an IP address",
      hint: "127.0.0.1 for this machine alone, 0.0.0.0 for all networks; the port goes to http.port")
  }

  static var ipv4Address: Self {
    .text(1...15, { isAddress($0, AF_INET) ? $0 : nil }, "an IPv4 address")
  }

  private static func isAddress(_ text: String, _ family: Int32) -> Bool {
    // Large enough for either family.
    var address = in6_addr()
    return inet_pton(family, text, &address) == 1
  }

  /// Whether the text is an address, with or without the interface of a link-local one: `fe80::1%eth0`.
  fileprivate static func isIPv6(_ text: String) -> Bool {
    let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    return isAddress(String(parts[0]), AF_INET6) && parts.dropFirst().allSatisfy { !$0.isEmpty }
  }

  /// The first levels of topics.
  static var topic: Self {
    .text(longest: 256) { text in
      // Bytes are compared, as the broker sees them: to `String`, a + with an accent is another character.
      if text.utf8.contains(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }) {
        return ConfigurationProblem("\(Excerpt(text)) contains a wildcard, + or #")
      }
      if text.utf8.first == UInt8(ascii: "$") {
        return ConfigurationProblem("\(Excerpt(text)) begins with $, which is reserved for the broker")
      }
      let levels = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      if levels.contains(where: \.isEmpty) {
        return ConfigurationProblem(
          "\(Excerpt(text)) has an empty level", hint: "no / at the start or the end, no //")
      }
      // MQTT 5, 1.5.4: a broker may refuse non-characters, and mosquitto does.
      if text.unicodeScalars.contains(where: \.properties.isNoncharacterCodePoint) {
        return ConfigurationProblem("\(Excerpt(text)) contains a character that brokers refuse")
      }
      return nil
    }
  }
}
