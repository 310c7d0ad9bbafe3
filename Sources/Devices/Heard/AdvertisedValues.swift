import BlueZ
import GATT

extension Profile {
  /// Whether something in what is advertised is for the profile of a device that is only heard, be it malformed or encrypted.
  func takes(_ advertised: AdvertisedData) -> Bool {
    properties.contains { property in
      property.source.map { source in
        advertised.data(source.data).map { source.value(in: $0, width: nil) != nil } == true
      } == true
    } || usesBTHome && ([BTHome.service] + BTHome.oldServices).contains { advertised.serviceData[$0] != nil }
  }
}
