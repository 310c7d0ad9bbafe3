import Configuration
import Devices
import GATT
import JSON

/// The output of `check`: every key of the configuration, then every known device, with values and their sources. It
/// contains no passwords.
struct CheckReport: CustomStringConvertible {
  private struct Row {
    let key: String
    let value: String
    let source: ValueSource

    /// - Parameter value: nil where there is none.
    init(_ key: String, _ value: String?, _ source: ValueSource) {
      self.key = key
      self.value = value.map { Excerpt.harmless($0) } ?? "–"
      self.source = source
    }
  }

  private struct Block {
    /// The title; nil for the configuration.
    let title: String?
    let rows: [Row]

    var indent: String { title == nil ? "" : "  " }
  }

  /// The gateway, with what its state database has of devices.
  let stored: StoredGateway
  /// The JSON that the configuration was read from: what is not in it has its default.
  let document: JSONValue

  var description: String {
    let blocks = [Block(title: nil, rows: configurationRows)] + deviceBlocks
    let rows = blocks.flatMap { block in block.rows.map { (block.indent + $0.key, $0.value) } }
    // A very long value does not widen the column.
    let keyWidth = rows.map(\.0.count).max() ?? 0
    let valueWidth = rows.map(\.1.count).filter { $0 <= 40 }.max() ?? 0
    return blocks.map { block in
      let lines = block.rows.map { row in
        let key = padded(block.indent + row.key, keyWidth)
        return "\(key)  \(padded(row.value, valueWidth))  \(row.source.rawValue)"
      }
      return ((block.title.map { [$0] } ?? []) + lines).joined(separator: "\n")
    }.joined(separator: "\n\n")
  }

  // MARK: The configuration

  /// Every key but `devices`, whose entries follow as devices, and `profiles`.
  private var configurationRows: [Row] {
    var named = stored.configuration
    named.gateway.id = stored.id
    return Configuration.keys.flatMap { key -> [Row] in
      let (value, given) = (key.write(named), document[key.name])
      guard case .object(let members) = key.shape else {
        switch key.shape {
        case .text, .bool:
          return value.map { [Row(key.name, $0.plain, given == nil ? .default : .configuration)] } ?? []
        case _: return []
        }
      }
      return members.flatMap { rows($0, "\(key.name).\($0.name)", value?[$0.name], given?[$0.name]) }
    }
  }

  private func rows(
    _ member: ConfigurationShape.Member, _ path: String, _ value: JSONValue?, _ given: JSONValue?
  ) -> [Row] {
    if case .object(let members) = member.shape, case .object(let object) = value, !object.members.isEmpty {
      return members.flatMap { rows($0, "\(path).\($0.name)", value?[$0.name], given?[$0.name]) }
    }
    return [Row(path, value?.plain, given == nil ? .default : .configuration)]
  }

  // MARK: Devices

  /// The entries of the configuration in their order, then the other devices of the state database, by address.
  private var deviceBlocks: [Block] {
    let entries = stored.configuration.devices.map { entry in
      entry.match.identifier.map(device) ?? Block(title: title(entry), rows: rows(entry))
    }
    return entries + stored.withoutEntry.map(device)
  }

  private func title(_ entry: Configuration.Device) -> String {
    let match = entry.match
    let isMicrobit = stored.configuration.profile(of: entry.options).name == Profile.microbit.name
    let conditions = [
      match.radio.map { "called \($0), heard by radio" },
      match.name.map { "whose name is \"\(Excerpt.harmless($0))\"" },
      match.namePrefix.map { "whose name begins with \"\(Excerpt.harmless($0))\"" },
      match.nameContains.map { "whose name contains \"\(Excerpt.harmless($0))\"" },
      match.service.map { "with the service \($0)" },
      match.manufacturer.map { "of the manufacturer \($0)" },
      match.minRSSI.map { "received with \($0) dBm or more" },
    ].compactMap { $0 }
    return "every \(isMicrobit ? "micro:bit" : "device") \(conditions.joined(separator: " and "))"
  }

  private func device(_ address: BluetoothAddress) -> Block {
    let record = stored.records[address]
    let requested = record?.requested
    let name = record?.name.map { " \(Excerpt($0))" } ?? ""
    let matched = record?.matchedName.map { "an entry has matched it as \(Excerpt($0)), and keeps it" }
    func block(_ device: DeviceSettings?, _ remark: String? = nil) -> Block {
      let deleted = requested?.isDeleted == true ? "deleted in Home Assistant" : nil
      let remarks = [remark, matched, deleted]
        .compactMap { $0 }.map { ": \($0)" }.joined()
      return Block(title: "\(address)\(name)\(remarks)", rows: device.map { rows($0, record) } ?? [])
    }
    switch stored.assignment(address, Advertisement()) {
    case .here(let device): return block(device, requested?.isAdded == true ? "added by a request" : nil)
    case .elsewhere(let other, let device): return block(device, "served by the gateway \(other)")
    case .unmatched where record?.wasNeverOnline == true:
      return block(nil, "seen, but never online: what it advertises is not stored")
    case .unmatched: return block(nil, "no entry of config.json matches it")
    case .removed: return block(nil, "removed by a request")
    }
  }

  /// A row for each option, and instead of the option `desired` one for each property that can be set.
  private func rows(_ device: DeviceSettings, _ record: DeviceRecord?) -> [Row] {
    DeviceOptionTable.all.flatMap { option -> [Row] in
      if option.setsValues { return option.name == "desired" ? desired(device, record) : [] }
      let value: String? =
        switch option.name {
        case "id": device.id.description
        case "profile": device.profile.name
        case "properties": properties(device.profile).joined(separator: ", ")
        default: device[option].map { option.isSecret ? "given" : $0.plain }
        }
      return [Row(option.name, value, device.source(of: option))]
    }
  }

  /// The names in short, where the peripheral decides.
  private func properties(_ profile: Profile) -> [String] {
    guard profile.isAutomatic else { return profile.properties.map(\.name) }
    return [DeviceOptions.automatic] + profile.properties.filter { !$0.isAutomatic }.map(\.name)
  }

  /// The desired value of each state that can be set.
  private func desired(_ device: DeviceSettings, _ record: DeviceRecord?) -> [Row] {
    device.profile.properties.filter { $0.isWritable && $0.kind == .state }.map { property in
      let desired = device.desired(property, record)
      let value = desired.shown.map { value in
        let text = property.codec.json(value).written
        return property.unit.map { "\(text) \($0)" } ?? text
      }
      return Row(property.name, value, device.source(of: desired))
    }
  }

  /// The settings of an entry for unknown devices.
  private func rows(_ entry: Configuration.Device) -> [Row] {
    // Any address: only the default id depends on it.
    let device = DeviceSettings(BluetoothAddress(truncating: 0), entry, nil, in: stored.configuration)
    let rows = rows(device, nil)
    return entry.id == nil ? [Row("id", "its address", .default)] + rows.dropFirst() : rows
  }
}

/// The text, with spaces up to a width.
func padded(_ text: String, _ width: Int) -> String {
  text + String(repeating: " ", count: max(0, width - text.count))
}
