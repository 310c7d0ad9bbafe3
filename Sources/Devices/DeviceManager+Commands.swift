import Configuration
import GATT
import JSON

/// Setting and reading a property, for every front end. What cannot be carried out at all is thrown; what becomes of the rest
/// is an ``Outcome``.
extension DeviceManager {
  package func execute(_ command: Command, reply: @escaping CommandReply) throws(RequestError) {
    if command.property.hasPrefix(NamedValue.prefix) {
      return try requireDevice(command.device).values.execute(command, reply: reply)
    }
    let channel = try channel(command.property, of: try requireDevice(command.device))
    let property = channel.property
    let value = try property.value(ofCommand: command.value)
    // There is a writer: a property that cannot be set has been refused.
    channel.writer?.execute(
      EncodedCommand(value: value, timeToLive: command.timeToLive, sender: command.sender) { outcome in
        reply(CommandResult(property, requested: value.value, outcome))
      })
  }

  /// Reads a property now. A value that is a reading goes to the observers as well.
  package func get(
    _ property: String, of id: DeviceID, reply: @escaping CommandReply
  ) throws(RequestError) {
    let channel = try channel(property, of: try requireDevice(id))
    try channel.property.checkReadable()
    channel.reader.get { [property = channel.property] in reply(CommandResult(property, $0)) }
  }

  /// - Throws: if there is no such device, or it does not use such a property.
  package func property(_ name: String, of id: DeviceID) throws(RequestError) -> Property {
    let device = try requireDevice(id)
    if let value = device.description.namedValues.first(where: { $0.property.name == name }) {
      return value.property
    }
    // A value that was not received yet is sent by this property.
    if name.hasPrefix(NamedValue.prefix), let setter = device.description.valueSetter { return setter }
    return try channel(name, of: device).property
  }

  /// A value that the device's program named is not published any more, until it is received again.
  package func removeValue(_ key: ValueKey, of id: DeviceID) throws(RequestError) {
    guard try requireDevice(id).values.remove(key) else {
      throw RequestError(.notFound, "\(id) has no value \(key)")
    }
  }

  // MARK: Look-up

  func requireDevice(_ id: DeviceID) throws(RequestError) -> Device {
    if let device = registry.byID[id] { return device }
    let near = nearest(to: id.description, among: registry.byID.keys.map(\.description))
    throw RequestError(.notFound, "no device is called \(id)" + (near.map { ": did you mean \($0)?" } ?? ""))
  }

  /// The device that a request names by its id or by its address.
  func requireDevice(_ reference: DeviceReference) throws(RequestError) -> Device {
    switch reference {
    case .id(let id): return try requireDevice(id)
    case .address(let address):
      if let device = registry.byAddress[knownAddress(address)] { return device }
      throw RequestError(.notFound, "no device has the address \(address): add it with device/add")
    }
  }

  func channel(_ name: String, of device: Device) throws(RequestError) -> Channel {
    let profile = device.description.profile
    if let index = profile.index(ofPropertyNamed: name) { return device.channels[index] }
    let used = device.description.properties.map(\.name)
    let shown = TopicWord.isValid(name) ? name : Excerpt(name).description
    if name.hasPrefix(NamedValue.prefix), profile.values != nil {
      throw RequestError(.invalid, "\(shown) is only received, when the program sends it: watch shows it")
    }
    if configuration.profile(named: profile.name)?.property(named: name) != nil {
      throw RequestError(
        .invalid,
        "\(device.id) does not use \(shown): add it to its properties, in config.json or by device/options; in use: "
          + used.joined(separator: ", "))
    }
    let hint = nearest(to: name, among: used).map { ": did you mean \($0)?" }
    throw RequestError(
      .invalid,
      "\(device.id) has no property \(shown)" + (hint ?? "; in use: \(used.joined(separator: ", "))"))
  }

  // MARK: Earlier runs

  /// Answers commands of an earlier run for properties that the device no longer has.
  func failLostCommands(of device: Device) {
    for (name, waiting) in device.record.requested.waiting
    where device.settings.desired(named: name, device.record).waiting == nil {
      store.change(device.address) { $0.requested.waiting[name] = nil }
      let outcome = Outcome.failed(reason: "the value is no longer valid for the device's properties")
      if let sender = waiting.sender { device.answer(CommandResult(name, nil, outcome), to: sender) }
    }
  }
}

extension DeviceDescription {
  /// - Throws: if the device is disabled.
  package func checkEnabled() throws(RequestError) {
    guard settings.isEnabled else { throw RequestError("\(id) is disabled: enable it with device/options") }
  }
}

extension Property {
  func checkReadable() throws(RequestError) {
    if let problem = readProblem { throw RequestError(.invalid, problem) }
  }

  /// Whether line ends behind a value, as of `echo Hello | mosquitto_pub -s`, are sent: only with a text that is sent as it
  /// is, and is not shown by LEDs.
  private var keepsLineEnds: Bool {
    codec.isText && frame == nil && service != .microbitLEDService
  }

  /// The JSON that a text is; nil: it is none, and most likely meant as a plain value.
  static func json(_ text: String) throws(RequestError) -> JSONValue? {
    do throws(JSONSyntaxError) {
      return try JSONParser.parse(Array(text.utf8))
    } catch {
      guard text.utf8.contains(UInt8(ascii: "{")) else { return nil }
      throw RequestError(.invalid, "the payload is not a JSON object: \(error)")
    }
  }

  /// The value that the property is set to by a command with `json`. A string is the value itself for a text, a word or
  /// bytes, else JSON as text: `"2000"` stands for a number.
  func value(ofCommand json: JSONValue) throws(RequestError) -> EncodedValue {
    var json = json
    if case .string(let text) = json, codec.isPlain, !keepsLineEnds {
      json = .string(text.dropping(["\n", "\r"]))
    }
    var sent = json
    if case .string(let text) = json, !codec.isPlain {
      if text.utf8.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) {
        throw RequestError(.invalid, "the payload is empty")
      }
      sent = try Self.json(text) ?? json
    }
    do throws(ValueProblem) {
      return try value(of: sent)
    } catch {
      if case .type(let expected, _) = error {
        // As it was sent: 1e-5, not 1e-05.
        throw RequestError(.invalid, "\(Excerpt(json.payload)) is not \(expected)")
      }
      throw RequestError(.invalid, error.reason)
    }
  }
}
