import BlueZ
import Configuration
import GATT

extension Configuration {
  /// The known profile that fits what a peripheral advertises; nil: none does.
  package func profile(fitting peripheral: Peripheral) -> Profile? {
    if peripheral.name?.hasPrefix(Profile.microbitNamePrefix) == true { return .microbit }
    let known = Profile.builtIn + profiles
    let fitting = known.filter { profile in
      // A peripheral that sends data of a service may lack the service itself.
      let services = profile.hasLinks ? peripheral.services : Advertisement(peripheral).services
      return !profile.requires.isEmpty && profile.requires.allSatisfy(services.contains)
    }
    func uses(_ profile: Profile) -> Int {
      profile.hasLinks ? profile.properties.count { peripheral.services.contains($0.service) } : .max
    }
    return known.readingMost(of: peripheral.advertised) ?? fitting.max { uses($0) < uses($1) }
  }
}

extension [Profile] {
  /// The profile with a value in what is advertised, the one that asks most of the data if several have; nil: none has.
  fileprivate func readingMost(of advertised: AdvertisedData) -> Profile? {
    let read = flatMap { profile in
      profile.properties.filter { $0.isRead(in: advertised) }.compactMap(\.source).map { (profile, $0) }
    }
    func demand(_ source: Property.Source) -> (Int, Int) { (source.prefix.count, source.length ?? 0) }
    return read.max { demand($0.1) < demand($1.1) }?.0
  }
}

extension Property {
  /// Whether what is advertised has a value of the property.
  fileprivate func isRead(in advertised: AdvertisedData) -> Bool {
    bytes(in: advertised).flatMap { try? codec.decode($0) } != nil
  }
}
