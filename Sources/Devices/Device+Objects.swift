import BlueZ
import EventLoop
import GATT
import Log

/// What a device sends in BTHome: the properties for its objects, and why some cannot be read.
extension Device {
  /// A sender of ever new kinds of objects gets no more properties than these.
  private static let mostObjects = 64
  /// An encrypted frame may be repeated by a stranger after a restart if it was sent since the counter was stored: once in
  /// this time, to spare the disk, and at each event.
  private static let counterInterval = Duration.seconds(600)

  private var mayHaveObjects: Bool {
    isHeard
      && (description.profile.growsWithObjects
        || description.profile.properties.contains { $0.source?.data == .service(BTHome.service) })
  }

  /// Notes what is new in what it has sent.
  /// - Returns: whether that has objects that are no properties of the device yet, as far as there is room: it is to be made
  ///   again with more.
  func learnObjects(of seen: Peripheral) -> Bool {
    // A frame is repeated, and each adapter hears it.
    guard mayHaveObjects, let data = seen.advertised.serviceData[BTHome.service],
      !objects.hasRead(data, key: settings.key),
      let frame = try? BTHome.Frame(objects.read(data, key: settings.key, from: address))
    else { return false }
    if description.profile.growsWithObjects {
      let known = context.store.records[address]?.offered ?? []
      let new = frame.names.filter { !known.contains($0) }.prefix(max(0, Self.mostObjects - known.count))
      if !new.isEmpty {
        description.offered = known.union(new)
        context.store.change(address) { $0.offered = description.offered }
        return true
      }
    }
    learn(frame)
    return false
  }

  /// What it has sent, decrypted, and without what cannot be read, which is told.
  func readable(_ seen: Peripheral) -> Peripheral {
    guard mayHaveObjects else { return seen }
    guard let data = seen.advertised.serviceData[BTHome.service] else {
      let isOld = BTHome.oldServices.contains { seen.advertised.serviceData[$0] != nil }
      if isOld { session.heard(.unreadable(.version(1))) }
      return seen
    }
    var seen = seen
    do throws(BTHome.Obstacle) {
      seen.advertised.serviceData[BTHome.service] = try objects.read(data, key: settings.key, from: address)
    } catch {
      seen.advertised.serviceData[BTHome.service] = nil
      session.heard(.unreadable(error))
    }
    return seen
  }

  private func learn(_ frame: BTHome.Frame) {
    storeCounter(isUrgent: frame.hasEvents)
    if let id = frame.unknownObject, description.unknownObjects.insert(id).inserted {
      context.log.write(
        isAnonymous ? .debug : .warning,
        "it sends an object of BTHome that is not known, and what is behind it is lost",
        [
          "device": self.id, "address": address, "name": description.bluetoothName ?? "unknown",
          "object": "0x" + Hexadecimal.text(id, bytes: 1),
        ])
      report(.description)
    }
    if let firmware = frame.firmware, firmware != description.firmware {
      description.firmware = firmware
      context.store.change(address) { $0.firmware = firmware }
      report(.description)
    }
  }

  private func storeCounter(isUrgent: Bool) {
    guard let counter = objects.counter, counter != context.store.records[address]?.counter else { return }
    if !isUrgent, let stored = counterStored, Moment.now < stored + Self.counterInterval { return }
    counterStored = .now
    context.store.change(address) { $0.counter = counter }
  }
}
