import BlueZ
import EventLoop
import GATT
import Log

/// What a device sends in BTHome: the properties for its objects, and why some cannot be read.
extension HeardSession {
  /// A sender of ever new kinds of objects gets no more properties than these.
  private static let mostObjects = 64

  private var mayHaveObjects: Bool { device.description.profile.usesBTHome }

  /// - Returns: whether it has sent objects that are no properties of the device yet, as far as there is room.
  func learnObjects(of seen: Peripheral) -> Bool {
    // A frame is repeated, and each adapter hears it.
    guard mayHaveObjects, let data = seen.advertised.serviceData[BTHome.service],
      !objects.hasRead(data, key: device.settings.key),
      let frame = try? BTHome.Frame(plain(data))
    else { return false }
    if device.description.profile.growsWithObjects {
      let known = device.record.offered ?? []
      let new = frame.names.filter { !known.contains($0) }.prefix(max(0, Self.mostObjects - known.count))
      if !new.isEmpty {
        context.store.change(device.address) { [objects] in
          ($0.offered, $0.counter) = (known.union(new), objects.counter)
        }
        return true
      }
    }
    learn(frame)
    return false
  }

  /// What the device has sent, decrypted, and without what cannot be read, which is told.
  func readable(_ seen: Peripheral) -> Peripheral {
    guard mayHaveObjects else { return seen }
    guard let data = seen.advertised.serviceData[BTHome.service] else {
      let isOld = BTHome.oldServices.contains { seen.advertised.serviceData[$0] != nil }
      if isOld { note(.version(1)) }
      return seen
    }
    var seen = seen
    do throws(BTHome.Obstacle) {
      seen.advertised.serviceData[BTHome.service] = try plain(data)
    } catch {
      seen.advertised.serviceData[BTHome.service] = nil
      note(error)
    }
    return seen
  }

  private func plain(_ data: [UInt8]) throws(BTHome.Obstacle) -> [UInt8] {
    try objects.read(data, key: device.settings.key, from: device.address, silence: longSilence)
  }

  private func learn(_ frame: BTHome.Frame) {
    // A stranger may repeat a frame that was sent since the counter was written.
    context.store.change(device.address, isPrompt: frame.hasEvents) { [objects] in
      $0.counter = objects.counter
    }
    if let id = frame.unknownObject, device.description.unknownObjects.insert(id).inserted {
      context.log.write(
        device.isAnonymous ? .debug : .warning,
        "it sends a BTHome object of an unknown type: the objects after it cannot be read",
        [
          "device": device.id, "address": device.address,
          "name": device.description.bluetoothName ?? "unknown",
          "object": "0x" + Hexadecimal.text(id, bytes: 1),
        ])
      device.report(.description)
    }
    if let firmware = frame.firmware, firmware != device.record.firmware {
      context.store.change(device.address) { $0.firmware = firmware }
      device.report(.description)
    }
  }
}
