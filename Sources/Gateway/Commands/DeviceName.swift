import GATT
import JSON

/// A device or another peripheral that the user may mean.
struct Candidate: Equatable {
  let address: BluetoothAddress
  /// The id; nil: the peripheral is not a device of the gateway.
  let id: String?
  /// The Bluetooth name, and the configured one.
  let names: [String]
}

/// Finds the device that the user names: by its address, its id, or a part of its name that no other device
/// has.
enum DeviceName {
  enum Meaning: Equatable {
    case one(Candidate)
    /// No candidate, or several.
    case not([Candidate])
  }

  static func meaning(of text: String, among candidates: [Candidate]) -> Meaning {
    if let address = BluetoothAddress(text) ?? BluetoothAddress(compact: text.lowercased()),
      let one = candidates.first(where: { $0.address == address })
    {
      return .one(one)
    }
    if let one = candidates.first(where: { $0.id == text }) { return .one(one) }
    let part = text.lowercased()
    let matching = candidates.filter { candidate in
      (candidate.names + [candidate.id].compactMap { $0 }).contains {
        $0.lowercased().hasOccurrence(of: part)
      }
    }
    return matching.count == 1 ? .one(matching[0]) : .not(matching)
  }
}

extension Candidate: CustomStringConvertible {
  /// A line: `kitchen  C5:A1:B2:C3:D4:E5  "BBC micro:bit [zagep]"`.
  var description: String {
    ([id, address.description].compactMap { $0 } + names.map { Excerpt($0).description })
      .joined(separator: "  ")
  }

  /// Reads an entry of the requests `devices` or `scan`.
  init?(_ json: JSONValue) {
    guard let address = json["identifier"]?.text.flatMap({ BluetoothAddress($0) }) else { return nil }
    self.address = address
    id = (json["id"] ?? json["device"])?.text
    names = [json["name"], json["bluetooth_name"]].compactMap { $0?.text }
  }
}

extension JSONValue {
  /// The value as text to display: a string without quotes, with a mark for each invisible character.
  var shown: String {
    Excerpt.harmless(text ?? String(decoding: bytes, as: UTF8.self))
  }

  /// The value with its unit: `21 °C`.
  func shown(unit: JSONValue?) -> String { unit.map { "\(shown) \($0.shown)" } ?? shown }
}
