import GATT
import Testing

@testable import Devices

@Test(
  "A list is written element by element, and an empty one not at all",
  arguments: [
    ("", []), ("1234", [[1, 2, 3, 4]]), ("12345", [[1, 2, 3, 4], [5]]),
    ("12345678", [[1, 2, 3, 4], [5, 6, 7, 8]]),
  ] as [(String, [[UInt8]])])
func pieces(digits: String, pieces: [[UInt8]]) throws {
  let property = try #require(Profile.microbit.properties.first { $0.name == "event_filter" })
  let bytes = digits.utf8.map { $0 - UInt8(ascii: "0") }
  #expect(property.chunk == 4 && property.pieces(of: bytes).map { Array($0) } == pieces)
}
