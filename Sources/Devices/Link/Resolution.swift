import BlueZ
import GATT

/// The characteristics of a link that a profile uses.
struct Resolution: Sendable {
  /// The characteristic of each property, in the order of the profile's properties; nil: the link does not offer it.
  let characteristics: [Characteristic?]
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
    let characteristics: [Characteristic?] = profile.properties.map { property in
      let usable = all.filter { $0.service == property.service && $0.flags.allow(property) }
      var matching = usable.filter { $0.uuid == property.characteristic }
      if matching.isEmpty { matching = usable.filter { $0.uuid == property.alternative } }
      return property.instance < matching.count ? matching[property.instance] : nil
    }
    self.characteristics = characteristics
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

extension Characteristic.Flags {
  /// Whether the characteristic supports the property's access and write mode.
  fileprivate func allow(_ property: Property) -> Bool {
    (!property.isReadable || contains(.read))
      && (!property.isWritable || contains(property.writeMode == .command ? .writeWithoutResponse : .write))
      && (!property.isNotifying || contains(.notify) || contains(.indicate))
  }
}
