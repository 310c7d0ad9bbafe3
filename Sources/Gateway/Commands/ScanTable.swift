import BlueZ
import Configuration
import Devices
import GATT
import JSON

/// The peripherals in range, and what the gateway does with each.
struct ScanTable {
  struct Row {
    let peripheral: Peripheral
    /// `-` if the configuration ignores the peripheral and no known profile fits it.
    let profile: String
    /// What the gateway would do with the peripheral.
    let use: String
    /// An entry for `devices` in config.json; nil if one matches already.
    let entry: String?

    var address: String { peripheral.address.description }
    var name: String? { peripheral.name.map { Excerpt($0).description } }
    var json: JSONValue { peripheral.json(nil).merging(["use": .string(use)]) }

    /// The text below ``ScanTable/header``.
    var cells: [String] {
      [
        address, peripheral.rssi.map { "\($0) dBm" } ?? "-", name ?? "-", profile,
        peripheral.isConnected ? "\(use) (connected)" : use,
      ]
    }
  }

  let rows: [Row]

  /// - Parameters:
  ///   - peripherals: in the order of the rows.
  ///   - devices: those of the gateway, as it lists them; none if it does not run.
  init(_ peripherals: [Peripheral], _ stored: StoredGateway, devices: [BluetoothAddress: JSONValue] = [:]) {
    rows = peripherals.map { Self.row($0, stored, devices[$0.address]) }
  }

  /// - Parameter device: what the gateway says, which knows more than one scan: a link, for example, hides what the
  ///   peripheral advertised before.
  private static func row(_ peripheral: Peripheral, _ stored: StoredGateway, _ device: JSONValue?) -> Row {
    let (advertisement, configuration) = (Advertisement(peripheral), stored.configuration)
    let assignment = stored.assignment(peripheral.address, advertisement)
    let match = configuration.device(matching: peripheral.address, advertisement)?.match
    let guess = configuration.profile(fitting: peripheral)?.name
    let isKnown =
      stored.records[peripheral.address]?.isKnownByAddress == true || configuration.names(peripheral.address)
    let (profile, use): (String, String) =
      if let device {
        (device["profile"]?.text ?? "-", Self.use(device))
      } else {
        switch assignment {
        case .here(let settings) where !settings.isEnabled: (settings.profile.name, "disabled")
        case .here(let settings):
          (
            settings.profile.name,
            (isKnown ? nil : Self.obstacle(to: peripheral, settings.profile, match?.minRSSI))
              ?? Self.use(settings)
          )
        case .elsewhere(let other, let settings): (settings.profile.name, "left to the gateway \(other)")
        case .unmatched: (guess ?? "-", "ignored")
        case .removed: (guess ?? "-", "removed by a request")
        }
      }
    let isUnmatched = device == nil && assignment == .unmatched
    return Row(
      peripheral: peripheral, profile: profile, use: use,
      entry: isUnmatched ? entry(for: peripheral, profile: guess) : nil)
  }

  /// Why a stranger that an entry matches does not become a device; nil: it does.
  private static func obstacle(to peripheral: Peripheral, _ profile: Profile, _ least: Int?) -> String? {
    if let least, let rssi = peripheral.rssi, rssi < least { return "too weak: min_rssi is \(least)" }
    return profile.lack(in: peripheral.advertised).map { "ignored: \($0)" }
  }

  private static func use(_ settings: DeviceSettings) -> String {
    let verb = verb(isHeard: !settings.profile.hasLinks)
    return settings.hasSharedID || settings.source(of: \.id) == .default ? verb : "\(verb) as \(settings.id)"
  }

  /// - Parameter device: as the gateway lists it.
  private static func use(_ device: JSONValue) -> String {
    guard device["session"] != "disabled" else { return "disabled" }
    return "\(verb(isHeard: device["heard"] == .bool(true))) as \(device["id"]?.shown ?? "-")"
  }

  private static func verb(isHeard: Bool) -> String { isHeard ? "hear" : "connect" }

  /// An entry of `devices`, on a line.
  private static func entry(for peripheral: Peripheral, profile: String?) -> String {
    let id = peripheral.name.flatMap { TopicWord.similar(to: $0) }
    let json: JSONValue = [
      "match": ["identifier": .string(peripheral.address.description)], "id": id.map(JSONValue.string),
      "profile": profile == Profile.microbit.name ? nil : .string(profile ?? "PROFILE"),
    ]
    return json.written
  }

  /// Services, and data in hexadecimal: `services 180d  manufacturer 0x004c: 0215`.
  private static func advertised(by peripheral: Peripheral) -> String? {
    let data = peripheral.advertised
    func number(_ number: Int, bytes: Int) -> String { Hexadecimal.text(number, bytes: bytes) }
    let services = peripheral.services.map(\.short).joined(separator: ",")
    let parts =
      (services.isEmpty ? [] : ["services \(services)"])
      + data.manufacturerData.sorted { $0.key < $1.key }.map {
        "manufacturer 0x\(number($0.key, bytes: 2)): \(Hexadecimal.text($0.value))"
      }
      + data.serviceData.sorted { $0.key.description < $1.key.description }.map {
        "service data \($0.key.short): \(Hexadecimal.text($0.value))"
      }
      + (data.flags.isEmpty ? [] : ["flags \(Hexadecimal.text(data.flags))"])
      + data.other.sorted { $0.key < $1.key }.map {
        "type \(number($0.key, bytes: 1)): \(Hexadecimal.text($0.value))"
      }
    return parts.isEmpty ? nil : parts.joined(separator: "  ")
  }

  // MARK: Text

  /// A line for each row, aligned, with the entry to copy at its end; what it advertises is another line.
  var lines: [String] {
    zip(rows, aligned(rows.map { $0.cells + [$0.entry ?? ""] })).map { row, line in
      line + (Self.advertised(by: row.peripheral).map { "\n    \($0)" } ?? "")
    }
  }

  static let header = ["ADDRESS", "SIGNAL", "NAME", "PROFILE", "CONFIGURATION"]

  /// The table with a header, and below it the entry for the strongest ignored peripheral; cut to the
  /// terminal's size.
  func screen(rows most: Int, columns: Int) -> [String] {
    let ignored = rows.first { $0.entry != nil && $0.profile != "-" } ?? rows.first { $0.entry != nil }
    let footer = ignored.map { row in
      [
        "", "To use \(row.name ?? row.address), add to devices in config.json:",
        "  \(row.entry ?? "")",
      ]
    }
    var lines = aligned([Self.header] + rows.map(\.cells))
    let room = max(2, most - (footer?.count ?? 0))
    if lines.count > room {
      lines = lines.prefix(room - 1) + ["… and \(lines.count - room + 1) more"]
    }
    return lines.map { String($0.prefix(columns)) } + (footer ?? [])
  }
}

/// Rows as lines with aligned columns, without spaces at their ends.
func aligned(_ rows: [[String]]) -> [String] {
  let columns = rows.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in
    rows.compactMap { column < $0.count ? $0[column].count : nil }.max() ?? 0
  }
  return rows.map { row in
    let line = zip(row, widths).map { padded($0, $1) }.joined(separator: "  ")
    return String(line.reversed().drop { $0 == " " }.reversed())
  }
}
