import GATT
import JSON

/// The output of `inspect`: the services, their characteristics with flags, properties and values.
struct InspectionText: CustomStringConvertible {
  let description: String

  /// - Parameter data: of the response to `device/inspect`.
  init(_ data: JSONValue) {
    let services = data["services"]?.elements ?? []
    let rows = services.map { service in
      (uuid: Self.short(service["uuid"]), rows: service["characteristics"]?.elements.flatMap(Self.rows) ?? [])
    }
    var lines = aligned(rows.flatMap(\.rows))[...]
    let blocks = rows.map { service in
      let own = lines.prefix(service.rows.count)
      lines = lines.dropFirst(service.rows.count)
      return (["service \(service.uuid)"] + own.map { "  \($0)" }).joined(separator: "\n")
    }
    let heard = data["heard"].map { Self.blocks(heard: $0.elements, data) }
    let unread = data["unread"].map { ["The other values were not read: \($0.shown)"] } ?? []
    description = ([Self.head(data)] + (heard ?? (blocks.isEmpty ? ["no services"] : blocks)) + unread)
      .joined(separator: "\n\n")
  }

  /// What it advertises, and the properties of its profile, each with its value or why there is none.
  private static func blocks(heard: [JSONValue], _ data: JSONValue) -> [String] {
    func rows(_ key: String, _ name: (String) -> String) -> [[String]] {
      guard case .object(let object) = data[key] else { return [] }
      return object.members.map { [name($0.name), $0.value.shown] }.sorted { $0[0] < $1[0] }
    }
    let advertised =
      rows("manufacturer_data") { "manufacturer \($0)" }
      + rows("service_data") { "service data \(short(.string($0)))" }
    let values = heard.map { item in
      let value = item["error"].map { "(\($0.shown))" } ?? item["value"]?.shown(unit: item["unit"])
      return [item["property"]?.shown ?? "", value ?? ""]
    }
    return [("advertised", advertised), ("properties", values)].filter { !$0.1.isEmpty }.map { title, rows in
      ([title] + aligned(rows).map { "  \($0)" }).joined(separator: "\n")
    }
  }

  private static func head(_ data: JSONValue) -> String {
    var first = [data["identifier"]?.shown ?? ""]
    if let name = data["name"]?.text { first.append(Excerpt(name).description) }
    if let rssi = data["rssi"]?.integer { first.append("\(rssi) dBm") }
    if let id = data["device"]?.text { first.append("device \(id)") }
    if data["paired"] == .bool(true) { first.append("paired") }
    guard let profile = data["profile"]?.text else {
      return first.joined(separator: "  ") + "\nno known profile fits it: see docs/profiles.md"
    }
    let services = (data["missing_services"]?.elements ?? []).map { short($0) }.joined(separator: ", ")
    let lack =
      services.isEmpty ? "properties of the profile" : "the service \(services), which the profile requires"
    let reason = data["heard"] == nil ? "lacks \(lack)" : "advertises no value that the profile takes"
    let fit = data["fits"] == .bool(true) ? "fits" : "does not fit: it \(reason)"
    let lacks = lacks(data["missing"]).map { "\nnot offered: \($0)" }.joined()
    return first.joined(separator: "  ") + "\nprofile \(profile): \(fit)\(lacks)"
  }

  /// The properties that are missing for the same reason, together.
  private static func lacks(_ missing: JSONValue?) -> [String] {
    guard case .object(let missing) = missing else { return [] }
    var reasons: [String] = []
    for member in missing.members where !reasons.contains(member.value.shown) {
      reasons.append(member.value.shown)
    }
    return reasons.map { reason in
      let names = missing.members.filter { $0.value.shown == reason }.map(\.name)
      return "\(names.joined(separator: ", ")) (\(reason))"
    }
  }

  /// A characteristic, and its descriptors below it.
  private static func rows(_ item: JSONValue) -> [[String]] {
    [row(item)] + (item["descriptors"]?.elements.map(descriptorRow) ?? [])
  }

  /// UUID and value.
  private static func descriptorRow(_ item: JSONValue) -> [String] {
    let text = item["value"]?["text"]?.text ?? item["value"]?.text.map { Excerpt($0).description }
    return ["  " + short(item["uuid"]), "", "", value(of: item, text)]
  }

  /// UUID, flags, property, value.
  private static func row(_ item: JSONValue) -> [String] {
    let flags = item["flags"]?.elements.compactMap(\.text).joined(separator: ",") ?? ""
    let value = value(of: item, item["value"]?.shown(unit: item["unit"]))
    let note = item["firmware_update"] == .bool(true) ? "(firmware update: never written)" : ""
    return [short(item["uuid"]), flags, item["property"]?.text ?? "-", value + note]
  }

  /// Why there is no value, else the value as `text`, else the bytes.
  private static func value(of item: JSONValue, _ text: String?) -> String {
    item["error"].map { "(\($0.shown))" } ?? text ?? item["bytes"].map { bytes(of: $0.text ?? "") } ?? ""
  }

  /// Hexadecimal digits, followed by the text if the bytes are printable.
  private static func bytes(of hexadecimal: String) -> String {
    let bytes = Hexadecimal.bytes(hexadecimal) ?? []
    let isText = !bytes.isEmpty && bytes.allSatisfy { (0x20...0x7E).contains($0) }
    let digits = hexadecimal.isEmpty ? "(empty)" : hexadecimal
    return isText ? "\(digits)  \"\(String(decoding: bytes, as: UTF8.self))\"" : digits
  }

  /// `2a24` for an assigned number.
  static func short(_ uuid: JSONValue?) -> String {
    let text = uuid?.text ?? ""
    return BluetoothUUID(text)?.short ?? text
  }
}
