import BlueZ
import EventLoop
import Findings
import GATT

/// How the values of a property come over a link: read, notified, or read again and again.
extension Channel {
  /// How often a value is read whose characteristic does not notify, though the property does.
  private static let standInInterval = Duration.seconds(60)

  /// Reads the value and subscribes to it, if the property's access says so.
  ///
  /// It is read before there is a handler for its signals: bluetoothd signals what it has read as well, and the value would come
  /// twice.
  /// - Parameter visit: the link is ended soon. A value that can be read is read alone, else the visit awaits the first one;
  ///   events are left out.
  func subscribe(on central: Central, in visit: Visit?) async throws(CentralError) {
    guard let characteristic, visit == nil || property.kind == .state else { return }
    // The value of a writable property is read by its writer.
    if property.kind == .state, property.isReadable, !property.isWritable {
      arrived(try await central.read(characteristic).get())
    }
    if visit != nil, property.isReadable { return }
    if let interval = property.poll { return poll(characteristic, every: interval) }
    guard property.isNotifying else { return }
    guard characteristic.flags.notifies else { return poll(characteristic, every: Self.standInInterval) }
    let name = property.name
    // The first value may come before the reply.
    visit?.awaits(name)
    do throws(CentralError) {
      // The closure is retained until the link ends, and must retain the device: `self.device` is unowned.
      try await central.subscribe(to: characteristic) { [self, device] bytes in
        withExtendedLifetime(device) { arrived(bytes) }
        visit?.awaitsNoLonger(name)
      }
      subscribed()
    } catch .notifyAcquired where property.isReadable && property.kind == .state {
      pollInstead(characteristic)
    } catch {
      visit?.awaitsNoLonger(name)
      throw error
    }
  }

  /// Another program has acquired the notifications: reads the value once per period, at most once a second.
  private func pollInstead(_ characteristic: Characteristic) {
    if !areNotificationsTaken {
      let finding = Finding.notificationsTaken(of: property.name)
      context.log.warning("\(finding.text): reading it instead (\(finding.remedy ?? ""))", device.fields)
    }
    areNotificationsTaken = true
    device.backgroundTask { [self, device] central in
      let isSubscribed = await central.poll(
        characteristic, every: { device.pollInterval }, subscribes: true
      ) {
        self.polled($0)
        // The closure is called as long as the link lasts, and retains the device: see `subscribe`.
        withExtendedLifetime(device) {}
      }
      guard isSubscribed else { return }
      subscribed()
      context.log.notice("\(property.name) is notified again", device.fields)
    }
  }

  private func poll(_ characteristic: Characteristic, every interval: Duration) {
    device.backgroundTask { [self] central in
      await central.poll(characteristic, every: { interval }, subscribes: false) { self.polled($0) }
    }
  }

  private func polled(_ result: Result<[UInt8], CentralError>) {
    switch result {
    case .success(let bytes): arrived(bytes)
    case .failure(.timedOut): device.session.linkSession?.feed(.unresponsive)
    case .failure(let error): context.log.debug("cannot read \(property.name): \(error)", device.fields)
    }
  }
}
