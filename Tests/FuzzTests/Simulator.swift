import GATT
import JSON

@testable import BlueZSimulator
@testable import Configuration
@testable import Peripherals

/// A line for the simulator or a served peripheral; what the file of a peripheral or a recording holds.
@Sendable func checkSimulator(_ bytes: [UInt8]) {
  var input = Input(bytes)
  let kind = input.byte()
  let rest = input.remainder()
  let text = String(decoding: rest, as: UTF8.self)
  switch kind % 5 {
  case 0:
    guard case .success(let request) = ControlRequest.parse(rest) else { return }
    expect((try? ControlRequest.parse(request.json.bytes).get())?.json == request.json, "another request")
  case 1:
    if case .failure(let errors) = PeripheralDescription.parse(rest) {
      for error in errors.errors { expectVisible("\(error)") }
    }
  case 2:
    // Not the one that reads a file.
    let property = properties[Int(kind / 5) % properties.count]
    guard !text.hasPrefix("replay:"), var generator = try? Generator(text, for: property) else { return }
    for _ in 0..<8 { expect(!generator.next().packets.isEmpty, "no value") }
  case 3:
    for row in (try? CSV.rows(rest)) ?? [] { expect(!row.fields.isEmpty, "an empty row") }
  default:
    if let input = try? InputLine(text, of: .microbit) {
      expect((try? input.property.packets(of: input.value)) != nil, "\(text): not sent")
    }
  }
}
