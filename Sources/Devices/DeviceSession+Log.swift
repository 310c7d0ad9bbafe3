import BlueZ
import Log

extension DeviceSession {
  func log(_ trouble: PeripheralSession.Trouble) {
    let remedy = trouble.remedy(device.id.description, profile, device.settings.pairing)
    let line = trouble.text(profile) + (remedy.map { " (\($0))" } ?? "")
    if case .connectFailed = trouble {
      log.info("\(line)", device.fields)
    } else {
      log.warning("\(line)", device.fields)
    }
  }

  private static let mostLogged = 100

  /// Logs each characteristic with the property that uses it.
  func logCharacteristics(_ characteristics: [Characteristic], _ resolution: Resolution) {
    guard Logger.isEnabled(.debug) else { return }
    for characteristic in characteristics.prefix(Self.mostLogged) {
      let index = resolution.characteristics.firstIndex(of: characteristic)
      log.debug(
        "characteristic",
        [
          "device": device.id, "address": device.address, "service": characteristic.service,
          "uuid": characteristic.uuid, "flags": characteristic.flags,
          "property": index.map { profile.properties[$0].name } ?? "-",
        ])
    }
    let rest = characteristics.count - Self.mostLogged
    if rest > 0 {
      log.debug("more characteristics", ["device": device.id, "address": device.address, "count": rest])
    }
  }
}
