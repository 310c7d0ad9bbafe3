import GATT
import MQTT

// The strings of the configuration that are more than words. The patterns are for editors, which check by the
// JSON schema; the gateway goes by the code beside them.

extension ConfigurationRule<DeviceID> {
  static var deviceID: Self {
    .text(
      1...TopicWord.longest, pattern: "^(?!(bridge|all|area)$)[a-z0-9_-]+$",
      parse: { text throws(ConfigurationProblem) in
        do throws(DeviceID.Problem) {
          return try DeviceID(text)
        } catch {
          switch error {
          case .characters: throw .characters(text)
          case .reserved: throw ConfigurationProblem("\(Excerpt(text)) is a word that topics use themselves")
          }
        }
      },
      write: \.description)
  }
}

extension ConfigurationRule<GatewayID> {
  static var gatewayID: Self {
    .text(
      1...TopicWord.longest, pattern: "^[a-z0-9_-]+$",
      parse: { text throws(ConfigurationProblem) in
        guard let id = GatewayID(text) else { throw .characters(text) }
        return id
      },
      write: \.description)
  }
}

extension ConfigurationProblem {
  fileprivate static func characters(_ text: String) -> ConfigurationProblem {
    ConfigurationProblem("\(Excerpt(text)) is no id", hint: "lower-case letters a-z, digits, - and _")
  }
}

extension ConfigurationRule<BluetoothAddress> {
  static var address: Self {
    .text(
      1...17, pattern: "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$",
      parse: { text throws(ConfigurationProblem) in
        guard let address = BluetoothAddress(text) else {
          throw ConfigurationProblem(
            "\(Excerpt(text)) is no Bluetooth address", hint: "like C5:A1:B2:C3:D4:E5")
        }
        return address
      },
      write: \.description)
  }
}

extension ConfigurationRule<Int> {
  /// The period of a device, in ms.
  static var period: Self { .integer(Property.microbitPeriod.range) }
}

extension ConfigurationRule<String> {
  /// What people call a device or a room.
  static var label: Self { .text(longest: 128) }

  /// An adapter as BlueZ names it.
  static var adapter: Self {
    .text(longest: 16, pattern: "^hci[0-9]+$") { text in
      let digits = text.dropFirst(3).utf8
      let isName =
        text.hasPrefix("hci") && !digits.isEmpty && digits.allSatisfy { (0x30...0x39).contains($0) }
      return isName ? nil : ConfigurationProblem("\(Excerpt(text)) is no adapter", hint: "like hci0")
    }
  }

  /// A name or an address of a host.
  static var host: Self {
    .text(longest: 255, pattern: "^[^\\s/]+$") { text in
      guard !text.utf8.contains(UInt8(ascii: "/")) else {
        return ConfigurationProblem(
          "\(Excerpt(text)) is no host name", hint: "the name alone: no mqtt:// before and no path behind it")
      }
      return text.contains(where: \.isWhitespace)
        ? ConfigurationProblem("\(Excerpt(text)) is no host name", hint: "no white space") : nil
    }
  }

  /// The first levels of topics.
  static var topic: Self {
    .text(longest: 256, pattern: "^[^/+#$][^/+#]*(/[^/+#]+)*$") { text in
      // By bytes, as the broker sees them: to `String`, a + with an accent is another character.
      if text.utf8.contains(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }) {
        return ConfigurationProblem("\(Excerpt(text)) holds a wildcard, + or #")
      }
      if text.utf8.first == UInt8(ascii: "$") {
        return ConfigurationProblem("\(Excerpt(text)) begins with $, which brokers keep for themselves")
      }
      let levels = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      if levels.contains(where: \.isEmpty) {
        return ConfigurationProblem(
          "\(Excerpt(text)) has an empty level", hint: "no / at the ends, no two in a row")
      }
      guard TopicName(text) != nil else {
        return ConfigurationProblem("\(Excerpt(text)) holds a character that brokers refuse")
      }
      return nil
    }
  }
}
