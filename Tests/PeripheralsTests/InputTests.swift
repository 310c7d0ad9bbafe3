import GATT
import Testing

@testable import Peripherals

/// Input lines of `PROPERTY VALUE`, and the text of values that centrals write.
@Suite struct InputTests {
  private static func bytes(_ line: String) throws -> [UInt8]? {
    guard let input = try InputLine(line, of: .microbit) else { return nil }
    return try input.property.packets(of: input.value).flatMap { $0 }
  }

  private static func reason(_ line: String) -> String? {
    do throws(PeripheralError) {
      _ = try InputLine(line, of: .microbit)
      return nil
    } catch {
      return error.description
    }
  }

  private static let lines: [(String, [UInt8])] = [
    ("temperature 23", [23]), ("  temperature\t -1 ", [0xFF]), ("button_a press_start", [1]),
    ("button_a \"press_end\"", [0]), ("accelerometer {\"x\":1,\"y\":2,\"z\":3}", [1, 0, 2, 0, 3, 0]),
    ("uart_rx two words", Array("two words\n".utf8)), ("uart_rx \"a\\nb\"", Array("a\nb\n".utf8)),
    ("led .#.#./#####/#####/.###./..#..", [0x0A, 0x1F, 0x1F, 0x0E, 0x04]),
  ]

  @Test(arguments: lines)
  func lineSetsValue(_ line: String, _ bytes: [UInt8]) throws {
    #expect(try Self.bytes(line) == bytes)
  }

  @Test(arguments: ["", "   ", "# temperature 23"])
  func emptyLinesAndCommentsAreIgnored(_ line: String) throws {
    #expect(try InputLine(line, of: .microbit) == nil)
  }

  private static let invalid: [(String, String)] = [
    ("temprature 23", "the profile microbit has no property \"temprature\" (did you mean temperature?)"),
    (
      "temperature",
      "temperature: the value is missing (write temperature and a whole number in plain digits)"
    ),
    ("temperature warm", "temperature: \"warm\" is not a whole number in plain digits"),
    ("temperature 128", "temperature: 128 is outside -128…127"),
    ("temperature 21.5", "temperature: \"21.5\" is not a whole number in plain digits"),
    ("temperature {\"v\":", "temperature: \"{\"v\":\" is not a whole number in plain digits"),
    ("button_a pressed", "button_a: \"pressed\" is not one of press_end, press_start, long_press_start"),
    ("accelerometer {\"x\":1}", "accelerometer: y: missing"),
    ("accelerometer 5", "accelerometer: \"5\" is not an object of x, y, z"),
    ("led_text Hi", "led_text is written by centrals, and cannot be set here"),
  ]

  @Test(arguments: invalid)
  func invalidLineIsReported(_ line: String, _ reason: String) {
    #expect(Self.reason(line) == reason)
  }

  private static let written: [(String, [UInt8], String)] = [
    ("period", [0xF4, 1], "500"), ("led_text", Array("Hi all".utf8), "Hi all"),
    ("led_text", Array("a\nb".utf8), "\"a\\nb\""), ("led_text", Array("\"x".utf8), "\"\\\"x\""),
    ("led_text", [], "\"\""), ("led_text", [0xFF], "{\"bytes\":\"ff\"}"),
    ("calibration", [1], "start"),
    ("event_filter", [27, 0, 0, 0], "[{\"type\":27,\"value\":0}]"),
  ]

  @Test(arguments: written)
  func writtenValuePrintsAsOneLine(_ name: String, _ bytes: [UInt8], _ text: String) throws {
    let property = try #require(Profile.microbit.property(named: name))
    #expect(property.text(of: bytes) == text)
  }

  @Test func longLineOfTextIsSentInPackets() throws {
    let property = try #require(Profile.microbit.property(named: "uart_rx"))
    let packets = try property.packets(of: .text(String(repeating: "x", count: 25)))
    #expect(packets.map(\.count) == [20, 6])
    #expect(packets.last?.last == 10)
  }
}
