/// What the gateway knows about a kind of peripheral, as data.
public struct Profile: Sendable, Hashable {
  /// The name as `info` shows it: `microbit`.
  public let name: String
  /// Who makes them, for people.
  public let manufacturer: String
  /// What they are, for people; a peripheral that says its model itself knows better.
  public let model: String
  /// The service without which a peripheral is of no use as one of this kind.
  public let identifyingService: BluetoothUUID
  /// What to tell the user when that service is absent: the likely cause and what to do about it.
  public let missingHint: String
  /// Their order is kept: what belongs to each is found by its place.
  public let properties: [Property]
  /// The services that the properties live in, each once, in the order of the properties.
  public let services: [BluetoothUUID]

  /// ``services`` follow from the properties. Names of properties must differ: topics are made of them.
  public init(
    name: String, manufacturer: String, model: String, identifyingService: BluetoothUUID,
    missingHint: String, properties: [Property]
  ) {
    self.name = name
    self.manufacturer = manufacturer
    self.model = model
    self.identifyingService = identifyingService
    self.missingHint = missingHint
    self.properties = properties
    self.services = properties.reduce(into: []) { services, property in
      if !services.contains(property.service) { services.append(property.service) }
    }
  }

  /// The property of this name, if there is one.
  public func property(named name: some StringProtocol) -> Property? {
    properties.first { $0.name == name }
  }

  /// Those of `values`, by the names of properties, that a command may ask for; of properties of other versions all.
  public func settable(_ values: [String: Int]) -> [String: Int] {
    values.filter { property(named: $0.key)?.range.contains($0.value) ?? true }
  }

  /// The property that `characteristic` of `service` is, if it is one.
  public func property(service: BluetoothUUID, characteristic: BluetoothUUID) -> Property? {
    properties.first { $0.service == service && $0.characteristic == characteristic }
  }
}
