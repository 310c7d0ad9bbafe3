import Configuration
import Devices
import GATT
import JSON

/// A device as JSON: see docs/http.md.
extension WebDevice {
  /// The members of a device in the list of devices that the page gets in another form, or that are for other gateways.
  private static let omitted: Set = [
    "properties", "values", "log", "desired", "configured", "revision", "moved", "home_assistant",
  ]

  /// - Parameters:
  ///   - listing: its entry in the list of devices.
  ///   - owner: another gateway that uses it.
  func json(_ listing: JSONValue, owner: GatewayID?) -> JSONValue {
    guard case .object(let object) = listing else { return listing }
    let (last, count) = (last, device.profile.properties.count)
    let own: JSONValue = [
      "state": .string(stateText(owner: owner)), "attempt": attempts > 1 ? .integer(attempts) : nil,
      "online": .bool(device.isOnline), "on_demand": .bool(device.settings.isOnDemand),
      "wants_pairing": device.wantsPairing ? .bool(true) : nil,
      "has_log": device.mayHaveLog ? .bool(true) : nil,
      "publishes_log": device.settings.log ? .bool(true) : nil,
      "properties": .array(
        indices.map { json(at: $0, last[$0]) }
          + device.namedValues.enumerated().map { json($1, properties[count + $0], last[count + $0]) }),
    ]
    return JSONValue.object(JSONObject(object.members.filter { !Self.omitted.contains($0.name) })).merging(
      own)
  }

  /// The indices of the profile's properties that the device may have.
  private var indices: [Int] {
    let profile = device.profile
    return profile.properties.indices.filter {
      !profile.isAutomatic || device.mayOffer(profile.properties[$0].name)
    }
  }

  /// The state of its session, for people.
  func stateText(owner: GatewayID?) -> String {
    if let owner { return "used by the gateway \(owner)" }
    guard device.settings.isEnabled else { return "disconnected" }
    let attempt = attempts > 1 ? ", attempt \(attempts)" : ""
    if let turn = device.turn { return "waiting for a connection, place \(turn.position)" }
    switch device.session {
    case .absent: return "not in range"
    case .waiting: return "will be tried again" + attempt
    case .connecting: return "connecting" + attempt
    case .subscribing: return "getting its values"
    case .live: return "connected"
    case .leaving: return "disconnecting"
    case .idle: return "connected when needed"
    case .listening: return device.isOnline ? "heard" : "not heard"
    case .stopped: return "stopped"
    }
  }

  private func json(at index: Int, _ last: LastValue) -> JSONValue {
    let (property, state) = (device.profile.properties[index], properties[index])
    let own: JSONValue = [
      "available": .bool(
        device.isOnline && device.mayOffer(property.name) && !device.missing.contains(property.name))
    ]
    return property.pageJSON.merging(json(of: property, state, last)).merging(own)
      .merging(desiredJSON(property))
  }

  func desiredJSON(_ property: Property) -> JSONValue {
    let desired = device.desired(property)
    return [
      "desired": desired.shown.map(property.codec.json),
      "configured": desired.isConfigured ? .bool(true) : nil,
    ]
  }

  private func json(_ value: NamedValue, _ state: PropertyState, _ last: LastValue) -> JSONValue {
    let own: JSONValue = [
      "named": .bool(true), "available": .bool(device.isOnline && device.hasLines),
    ]
    return value.property.pageJSON
      .setting("type", to: .string(value.type))
      .setting("writable", to: .bool(device.valueSetter != nil))
      .merging(own).merging(json(of: value.property, state, last))
  }

  private func json(of property: Property, _ state: PropertyState, _ last: LastValue) -> JSONValue {
    let offset = device.settings.offset(property.name)
    return [
      "value": last.published(property).map(property.codec.json),
      "time": last.time.map { .string($0.description) },
      "count": .integer(Int(clamping: last.count)),
      "offset": (offset?.value).map(JSONValue.init(number:)),
      "offset_configured": offset?.isConfigured == true ? .bool(true) : nil,
      "write": state.write?.json(property.codec),
    ]
  }

  /// The numbers that it has a history of, with the names of their columns.
  var columns: [(name: String, series: Int)] {
    zip(device.allProperties, properties).flatMap { property, state in
      state.series.sorted { $0.key < $1.key }.map { index, number in
        let field = property.codec.fields?[index]
        let unit = property.unit(of: field).map { " (\($0))" } ?? ""
        return (property.name + (field.map { ".\($0)" } ?? "") + unit, number)
      }
    }
  }
}

extension PropertyState.Write {
  func json(_ codec: Codec) -> JSONValue {
    [
      "status": .string(outcome?.word ?? "writing"), "requested": codec.json(requested),
      "actual": outcome?.actual.map(codec.json), "reason": (outcome?.reason).map(JSONValue.string),
      "time": .string(time.description),
    ]
  }
}

extension Property {
  /// A name for people.
  var title: String {
    homeAssistant.first { $0.field == nil }?.name ?? name.label
  }

  /// What does not change.
  fileprivate var pageJSON: JSONValue {
    let words = codec.words.inOrder.map(JSONValue.string)
    let own: JSONValue = [
      "name": .string(name), "title": .string(title), "kind": .string(kind.rawValue),
      "unit": unit.map(JSONValue.string),
      "range": codec.step == nil && range == nil
        ? nil
        : (range ?? codec.range).map {
          [JSONValue(number: $0.lowerBound), JSONValue(number: $0.upperBound)]
        },
      "max_length": longestText.map(JSONValue.integer),
      "choices": choices, "readable": .bool(isReadable && kind == .state), "notifies": .bool(isNotifying),
      "writable": .bool(isWritable),
    ]
    let units = codec.units.mapValues(JSONValue.string)
    return own.merging(codec.pageJSON(words)).merging(["units": units.isEmpty ? nil : .object(units)])
  }

  private var choices: JSONValue? {
    for entity in homeAssistant {
      guard case .select(let choices) = entity.kind, !choices.isEmpty else { continue }
      return .array(choices.map { ["label": .string($0.label), "value": codec.json($0.value)] })
    }
    return nil
  }
}

extension Codec {
  fileprivate func pageJSON(_ words: [JSONValue]) -> JSONValue {
    switch description {
    case .record: return ["type": "record", "fields": .array((fields ?? []).map(JSONValue.string))]
    case .list: return ["type": "list"]
    case .flags(_, let names):
      return ["type": "flags", "values": .array(names.inOrder.map(JSONValue.string))]
    case .advertised:
      if let fields { return ["type": "record", "fields": .array(fields.map(JSONValue.string))] }
      return ["type": content == .bool ? "boolean" : content.isNumber ? "number" : "text"]
    case .scalar where !words.isEmpty: return ["type": "choice", "values": .array(words)]
    case .scalar(let scalar):
      switch scalar.type {
      case .bool: return ["type": "boolean"]
      case .utf8: return ["type": "text"]
      case .bytes: return ["type": "bytes"]
      case .bits:
        return ["type": "picture", "rows": .integer(scalar.rows), "columns": .integer(scalar.columns)]
      case _: return ["type": scalar.isInteger ? "integer" : "number"]
      }
    }
  }
}
