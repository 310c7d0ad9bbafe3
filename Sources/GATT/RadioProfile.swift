extension Property {
  /// What is sent to the program of a micro:bit by radio: values, each once, and acknowledged by nothing but their echo.
  public static let radioSetter = Property(
    name: "radio_tx", service: BluetoothUUID(short: 0), characteristic: BluetoothUUID(short: 0), kind: .event,
    access: .write, writeMode: .command, codec: .utf8)
}

extension Profile {
  /// A micro:bit that another one, which is wired, hears by MakeCode's radio. The properties are those that it has sent.
  public static let radio: Profile = constant(
    try Profile(
      name: "radio", manufacturer: "micro:bit Educational Foundation", model: "BBC micro:bit",
      values: "radio_rx",
      properties: [
        Property(
          name: "radio_rx", source: Property.Source(.radio), kind: .event, codec: .utf8, isAutomatic: true),
        button(.microbitButtonA, "a"), button(.microbitButtonB, "b"),
      ]))

  /// Presses of a button: the program sends `a:1`.
  private static func button(_ button: Property, _ name: String) -> Property {
    Property(
      name: button.name, source: Property.Source(.radio, prefix: Array(name.utf8)), kind: .event,
      codec: button.codec, isAutomatic: true, homeAssistant: button.homeAssistant)
  }
}
