import BlueZ
import EventLoop
import GATT
import Log

/// What a device's link offers, from its beginning to its end: assigns the characteristics to the channels, which are read and
/// subscribed to. When there is a link is decided by ``LinkSession`` alone.
@LoopActor final class LinkServices {
  /// The characteristics of the Device Information Service; empty without a link, or if the link lacks them.
  private var information: [Characteristic] = []
  /// Reads the data log; nil without a link, or if the link lacks it.
  private(set) var log: Characteristic?
  /// The LEDs of a micro:bit; nil without a link, or if the link lacks them.
  private(set) var leds: Characteristic?
  /// The visit for which the link is made; nil: the link is to last, or there is none.
  private var visit: Visit?
  /// The property whose readings show that the link is alive; nil: the link alone does.
  private(set) var alive: Int?
  /// The names of the properties that the link offers, usable or not.
  private(set) var offered: Set<String> = []
  /// What was logged last of properties that the device lacks, and why.
  private var lacks: [String: String] = [:]
  /// The characteristics of properties that could not be used on this link, by the property's index: they are tried again.
  private var excluded: [Int: Characteristic] = [:]
  private var retry: LoopTimer?
  private var retryBackOff = BackOff(first: .seconds(60), longest: .seconds(3600))
  private unowned let device: Device

  private var context: DeviceContext { device.context }
  private var profile: Profile { device.description.profile }
  private var channels: [Channel] { device.channels }

  init(of device: Device) { self.device = device }

  var hasInformation: Bool { !information.isEmpty }

  /// Assigns the characteristics of a new link to the channels.
  func begin(_ characteristics: [Characteristic]) -> LinkMachine.Connection {
    let resolution = resolve(characteristics)
    for channel in channels { use(resolution, for: channel) }
    information = resolution.information
    log = resolution.log
    visit = device.settings.isOnDemand ? Visit() : nil
    learn(resolution)
    guard isSuitable(resolution) else { return .unsuitable(lacks: resolution.missingServices) }
    tellLacks()
    return .connected
  }

  private func use(_ resolution: Resolution, for channel: Channel) {
    channel.characteristicChanged(
      to: resolution.characteristics[channel.index], lack: resolution.lacks[channel.index])
  }

  /// Logs once what the device's program lacks of a user's profile.
  private func tellLacks() {
    let lacks = Dictionary(uniqueKeysWithValues: device.lacks.map { ($0.property, $0.reason) })
    guard lacks != self.lacks else { return }
    self.lacks = lacks
    for (name, lack) in device.lacks { context.log.warning("\(name) is not offered: \(lack)", device.fields) }
  }

  /// A log that is to be published is enough: in pairing mode a micro:bit offers nothing else.
  private func isSuitable(_ resolution: Resolution) -> Bool {
    resolution.isSuitable || resolution.log != nil && device.settings.log && profile.isAutomatic
  }

  private func learn(_ resolution: Resolution) {
    alive = resolution.alive
    leds = resolution.leds
    offered = Set(channels.filter { $0.characteristic != nil }.map(\.property.name))
  }

  /// The link has ended, or is being ended.
  func end() {
    for channel in channels { channel.linkDown() }
    information = []
    leds = nil
    setLog(nil)
    visit?.end()
    visit = nil
    retry?.cancel()
    retry = nil
    retryBackOff.reset()
    excluded = [:]
  }

  private func setLog(_ log: Characteristic?) {
    guard log != self.log else { return }
    self.log = log
    device.dataLog?.linkDown()
  }

  /// The session is live: what waits for the link is carried out.
  func up() { for channel in channels { channel.linkUp() } }

  // MARK: Subscribing

  func subscribe(on central: Central) async -> LinkMachine.Subscription {
    let before = device.sequence
    let visit = visit
    do throws(CentralError) {
      for channel in channels { try await channel.writer?.writeBeforeReading(on: central) }
      var last: CentralError?
      for channel in channels { last = try await subscribe(channel, in: visit, on: central) ?? last }
      if let last, channels.allSatisfy({ $0.characteristic == nil }) { throw last }
      for property in await visit?.missingValues() ?? [] {
        context.log.info("no value of \(property) was notified while it was connected", device.fields)
      }
      return .subscribed
    } catch {
      return error.leavesLinkUp && device.sequence == before ? .unreadable(error) : .failed(error)
    }
  }

  /// Subscribes one channel. A failure that leaves the link usable only excludes the channel, unless the property keeps
  /// the link alive or is the only one.
  /// - Returns: why the channel is excluded; nil: it is used.
  private func subscribe(
    _ channel: Channel, in visit: Visit?, on central: Central
  ) async throws(CentralError) -> CentralError? {
    do throws(CentralError) {
      try await use(channel, in: visit, on: central)
      return nil
    } catch {
      let isOptional = alive.map { $0 != channel.index } ?? (offered.count > 1)
      switch error {
      // One that the end of the link has caused arrives as `disconnected`.
      case .refused where isOptional, .transient where isOptional, .notifyAcquired where isOptional,
        .unlikely where isOptional:
        exclude(channel, because: error)
        return error
      case .refused, .transient, .notifyAcquired, .busy, .unlikely, .timedOut, .gone, .disconnected,
        .keyMissing, .cutShort, .unavailable:
        throw error
      }
    }
  }

  private func exclude(_ channel: Channel, because error: CentralError) {
    excluded[channel.index] = channel.characteristic
    channel.exclude(because: error)
    guard visit == nil, retry == nil else { return }
    retry = loop.timer(after: retryBackOff.next()) { [weak self] in self?.tryExcluded() }
  }

  /// A sensor that could not be read once may be read a minute later.
  private func tryExcluded() {
    retry = nil
    let again = channels.filter { excluded[$0.index] != nil }
    guard !again.isEmpty else { return }
    for channel in again { channel.include(excluded.removeValue(forKey: channel.index)) }
    device.task { [self] central in
      if await use(again, on: central, while: { self.device.isLive }) { device.handle(.offered(offered)) }
    }
  }

  /// Reads the property, and subscribes to it if the link is to last.
  private func use(
    _ channel: Channel, in visit: Visit?, on central: Central
  ) async throws(CentralError) {
    guard let visit else { return try await channel.subscribe(on: central) }
    try await channel.visit(visit, on: central)
  }

  // MARK: Services that change

  /// Stops using removed characteristics.
  /// - Returns: the channels that have another characteristic now; nil: the link lacks what the profile requires.
  func changeServices(to characteristics: [Characteristic]) -> [Channel]? {
    context.log.info("services changed", device.fields)
    let resolution = resolve(characteristics)
    let changed = channels.filter { $0.characteristic != resolution.characteristics[$0.index] }
    for channel in changed {
      channel.linkDown()
      excluded[channel.index] = nil
      use(resolution, for: channel)
    }
    setLog(resolution.log)
    learn(resolution)
    return isSuitable(resolution) ? changed : nil
  }

  /// Starts using added characteristics.
  /// - Parameter isLive: whether the session is still live.
  /// - Returns: whether the session is still live afterwards.
  func use(
    _ changed: [Channel], on central: Central, while isLive: () -> Bool
  ) async -> Bool {
    let visit = visit
    for channel in changed { try? await channel.writer?.writeBeforeReading(on: central) }
    for channel in changed {
      let characteristic = channel.characteristic
      do throws(CentralError) {
        try await use(channel, in: visit, on: central)
      } catch {
        if channel.characteristic == characteristic { exclude(channel, because: error) }
      }
      guard isLive() else { return false }
      // Otherwise the services have changed again, and another task uses the new characteristic.
      if channel.characteristic == characteristic || channel.characteristic == nil { channel.linkUp() }
    }
    return true
  }

  // MARK: Device information

  /// Reads model, firmware and serial number.
  /// - Returns: whether each read was answered.
  func readInformation(on central: Central) async -> Bool {
    var texts: [BluetoothUUID: String] = [:]
    var isAnswered = true
    for characteristic in information where isAnswered {
      do throws(CentralError) {
        texts[characteristic.uuid] = DeviceInformation.text(try await central.read(characteristic))
      } catch .timedOut {
        isAnswered = false
      } catch {
        context.log.debug("cannot read its device information: \(error)", device.fields)
      }
    }
    device.handle(.information(texts))
    return isAnswered
  }

  // MARK: Characteristics

  private static let mostLogged = 100

  /// Logs each characteristic with the property that uses it.
  private func resolve(_ characteristics: [Characteristic]) -> Resolution {
    let resolution = Resolution(profile, characteristics)
    guard Logger.isEnabled(.debug) else { return resolution }
    for characteristic in characteristics.prefix(Self.mostLogged) {
      let index = resolution.characteristics.firstIndex(of: characteristic)
      context.log.debug(
        "characteristic",
        [
          "device": device.id, "address": device.address, "service": characteristic.service,
          "uuid": characteristic.uuid, "flags": characteristic.flags,
          "property": index.map { profile.properties[$0].name } ?? "-",
        ])
    }
    let rest = characteristics.count - Self.mostLogged
    if rest > 0 {
      context.log.debug(
        "more characteristics", ["device": device.id, "address": device.address, "count": rest])
    }
    return resolution
  }
}

extension CentralError {
  /// Whether the link may still be up after this error. Then a failed read may be due to missing pairing.
  fileprivate var leavesLinkUp: Bool {
    switch self {
    case .timedOut, .unlikely: true
    case .transient, .busy, .gone, .disconnected, .refused, .notifyAcquired, .keyMissing, .cutShort,
      .unavailable:
      false
    }
  }
}
