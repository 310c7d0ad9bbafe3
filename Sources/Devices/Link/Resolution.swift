import BlueZ
import GATT

/// The characteristics of a link that a profile uses.
struct Resolution: Sendable {
  /// The characteristic of each property, in the order of the profile's properties; nil: the link does not offer it.
  let characteristics: [Characteristic?]
  /// The names of the properties that the link offers, usable or not.
  let offered: Set<String>
  /// Why the link does not offer a property, by its index.
  let lacks: [Int: String]
  /// The characteristics of the Device Information Service that are read.
  let information: [Characteristic]
  /// Reads the data log of a micro:bit V2.
  let log: Characteristic?
  /// The LEDs of a micro:bit, whether a property uses them or not.
  let leds: Characteristic?
  /// The property whose readings show that the link is alive; nil: the link alone does.
  let alive: Int?
  /// The services that the profile requires, and the link lacks.
  let missingServices: [BluetoothUUID]
  /// Whether the link offers what the profile requires.
  let isSuitable: Bool

  init(_ profile: Profile, _ all: [Characteristic]) {
    let characteristics: [Characteristic?] = profile.properties.indices.map { index in
      let property = profile.properties[index]
      return Self.characteristic(of: property, all, orReads: false)
        ?? (index == profile.alive?.property ? nil : Self.characteristic(of: property, all, orReads: true))
    }
    self.characteristics = characteristics
    let missing = characteristics.indices.filter { characteristics[$0] == nil }
    offered = Set(zip(profile.properties, characteristics).compactMap { $1 == nil ? nil : $0.name })
    lacks = Dictionary(uniqueKeysWithValues: missing.map { ($0, Self.lack(of: profile.properties[$0], all)) })
    information = all.filter {
      $0.service == DeviceInformation.service && DeviceInformation.texts.contains($0.uuid)
        && $0.flags.contains(.read)
    }
    log = all.first {
      $0.uuid == .microbitUtility && $0.service == .microbitUtilityService && $0.flags.contains(.notify)
    }
    leds = all.first {
      $0.uuid == Property.microbitLEDMatrix.characteristic && $0.service == .microbitLEDService
        && $0.flags.isSuperset(of: [.read, .write])
    }
    let services = Set(all.map(\.service))
    missingServices = profile.requires.filter { !services.contains($0) }
    alive = profile.alive.map(\.property).flatMap { property in
      profile.isAutomatic && characteristics[property] == nil ? nil : property
    }
    isSuitable =
      missingServices.isEmpty
      && (alive.map { characteristics[$0] != nil } ?? characteristics.contains { $0 != nil })
  }
}

extension Resolution {
  /// The properties that the link does not offer, and why, in the order of the profile.
  func missing(of profile: Profile) -> [(property: String, reason: String)] {
    lacks.sorted { $0.key < $1.key }.map { (profile.properties[$0.key].name, $0.value) }
  }

  /// - Parameter orReads: whether reading may stand in for notifications.
  private static func characteristic(
    of property: Property, _ all: [Characteristic], orReads: Bool
  ) -> Characteristic? {
    let usable = all.filter {
      $0.service == property.service && $0.flags.obstacle(to: property, orReads: orReads) == nil
    }
    var matching = usable.filter { $0.uuid == property.characteristic }
    if matching.isEmpty { matching = usable.filter { $0.uuid == property.alternative } }
    return property.instance < matching.count ? matching[property.instance] : nil
  }

  /// Why a property cannot be used on a link that has these characteristics.
  private static func lack(of property: Property, _ all: [Characteristic]) -> String {
    let service = all.filter { $0.service == property.service }
    guard !service.isEmpty else { return "it has no service \(property.service.short)" }
    let name = property.characteristic.short
    let own = service.filter { $0.uuid == property.characteristic || $0.uuid == property.alternative }
    guard let found = own.first else {
      return "its service \(property.service.short) has no characteristic \(name)"
    }
    guard let obstacle = found.flags.obstacle(to: property) else {
      return
        "its service \(property.service.short) has no characteristic \(name) with the instance \(property.instance)"
    }
    return "its characteristic \(found.uuid.short) \(obstacle)"
  }
}

extension Characteristic.Flags {
  /// Why the characteristic does not support the property's access and write mode; nil: it does.
  /// - Parameter orReads: whether reading may stand in for notifications.
  fileprivate func obstacle(to property: Property, orReads: Bool = false) -> String? {
    if property.isReadable, !contains(.read) { return "cannot be read" }
    if property.isNotifying, !notifies, !(orReads && property.isReadable && property.kind == .state) {
      return "does not notify"
    }
    let write: Self = property.writeMode == .command ? .writeWithoutResponse : .write
    guard property.isWritable, !contains(write) else { return nil }
    switch property.writeMode {
    case .command where contains(.write): return "is written with \"write\": \"request\" only"
    case .confirm where contains(.writeWithoutResponse), .request where contains(.writeWithoutResponse):
      return "is written with \"write\": \"command\" only"
    case .confirm, .request, .command: return "cannot be written"
    }
  }

  /// Whether the peripheral sends the values.
  var notifies: Bool { !isDisjoint(with: [.notify, .indicate]) }
}
