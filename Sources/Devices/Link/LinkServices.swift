import BlueZ
import EventLoop
import GATT
import Log

/// What a device's link offers, from its beginning to its end: assigns the characteristics to the channels, which are read and
/// subscribed to. When there is a link is decided by ``LinkSession`` alone.
@LoopActor final class LinkServices {
  /// What the link offers; nil: there is none.
  private(set) var resolution: Resolution? {
    didSet { if resolution?.log != oldValue?.log { device.dataLog.linkDown() } }
  }
  /// The visit for which the link is made; nil: the link is to last, or there is none.
  private var visit: Visit?
  /// What was logged last of properties that the device lacks, and why.
  private var lacks: [String: String] = [:]
  /// When the properties that could not be used on this link are tried again.
  private var retry: LoopTimer?
  private var retryBackOff = BackOff(first: .seconds(60), longest: .seconds(3600))
  private unowned let device: Device

  private var context: DeviceContext { device.context }
  private var profile: Profile { device.description.profile }
  private var channels: [Channel] { device.channels }

  init(of device: Device) { self.device = device }

  var alive: Int? { resolution?.alive }
  var offered: Set<String> { resolution?.offered ?? [] }
  private var information: [Characteristic] { resolution?.information ?? [] }
  var hasInformation: Bool { !information.isEmpty }

  /// Assigns the characteristics of a new link to the channels.
  func begin(_ characteristics: [Characteristic]) -> LinkMachine.Connection {
    let resolution = resolve(characteristics)
    self.resolution = resolution
    for channel in channels { channel.use(resolution) }
    visit = device.settings.isOnDemand ? Visit() : nil
    guard isSuitable(resolution) else {
      let properties = resolution.missing(of: profile).map { Lacks.text($0.property, $0.reason) }
      return .unsuitable(lacks: Lacks(services: resolution.missingServices, properties: properties))
    }
    tellLacks()
    return .connected
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

  /// The link has ended, or is being ended.
  func end() {
    for channel in channels { channel.linkDown() }
    resolution = nil
    visit?.end()
    visit = nil
    retry?.cancel()
    retry = nil
    retryBackOff.reset()
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
      for channel in channels {
        do throws(CentralError) {
          try await channel.subscribe(on: central, in: visit)
        } catch {
          // The link is usable without the channel, unless that keeps it alive or is the only one.
          guard error.concernsOneCharacteristic,
            alive.map({ $0 != channel.index }) ?? (offered.count > 1)
          else { throw error }
          exclude(channel, because: error)
          last = error
        }
      }
      if let last, channels.allSatisfy({ $0.characteristic == nil }) { throw last }
      for property in await visit?.missingValues() ?? [] {
        context.log.info("no value of \(property) was notified while it was connected", device.fields)
      }
      return .subscribed
    } catch {
      // A refusal says so; silence means it only where no value could be read.
      let isRefused = if case .refused = error { true } else { false }
      return error.wantsPairing && (isRefused || device.sequence == before)
        ? .unreadable(error) : .failed(error)
    }
  }

  private func exclude(_ channel: Channel, because error: CentralError) {
    channel.exclude(because: error)
    guard visit == nil, retry == nil else { return }
    retry = loop.timer(after: retryBackOff.next()) { [weak self] in self?.tryExcluded() }
  }

  /// A sensor that could not be read once may be read a minute later.
  private func tryExcluded() {
    retry = nil
    let again = channels.filter { $0.characteristic == nil && resolution?.characteristics[$0.index] != nil }
    guard !again.isEmpty else { return }
    for channel in again { channel.include(resolution?.characteristics[channel.index]) }
    device.task { [self] central in
      if await use(again, on: central) { device.offerChanged(to: offered) }
    }
  }

  // MARK: Services that change

  /// Stops using removed characteristics.
  /// - Returns: the channels that have another characteristic now; nil: the link lacks what the profile requires.
  func replace(with characteristics: [Characteristic]) -> [Channel]? {
    context.log.info("services changed", device.fields)
    let resolution = resolve(characteristics)
    let changed = channels.filter { $0.characteristic != resolution.characteristics[$0.index] }
    for channel in changed {
      channel.linkDown()
      channel.use(resolution)
    }
    self.resolution = resolution
    return isSuitable(resolution) ? changed : nil
  }

  /// Starts using added characteristics.
  /// - Returns: whether the session is still live afterwards.
  func use(_ changed: [Channel], on central: Central) async -> Bool {
    let visit = visit
    for channel in changed { try? await channel.writer?.writeBeforeReading(on: central) }
    for channel in changed {
      let characteristic = channel.characteristic
      do throws(CentralError) {
        try await channel.subscribe(on: central, in: visit)
      } catch {
        if channel.characteristic == characteristic { exclude(channel, because: error) }
      }
      guard device.isLive else { return false }
      // Otherwise the services have changed again, and another task uses the new characteristic.
      if channel.characteristic == characteristic || channel.characteristic == nil { channel.linkUp() }
    }
    return true
  }

  // MARK: Device information

  /// Reads model, firmware and serial number.
  func readInformation(on central: Central) async {
    var texts: [BluetoothUUID: String] = [:]
    var isAnswered = true
    for characteristic in information where isAnswered {
      do throws(CentralError) {
        texts[characteristic.uuid] = DeviceInformation.text(try await central.read(characteristic).get())
      } catch .timedOut {
        isAnswered = false
      } catch {
        context.log.debug("cannot read its device information: \(error)", device.fields)
      }
    }
    device.learn(texts)
    if !isAnswered { device.session.linkSession?.feed(.unresponsive) }
  }

  // MARK: Characteristics

  /// Logs each characteristic with the property that uses it.
  private func resolve(_ characteristics: [Characteristic]) -> Resolution {
    let resolution = Resolution(profile, characteristics)
    guard Logger.isEnabled(.debug) else { return resolution }
    for characteristic in characteristics {
      let index = resolution.characteristics.firstIndex(of: characteristic)
      context.log.debug(
        "characteristic",
        [
          "device": device.id, "address": device.address, "service": characteristic.service,
          "uuid": characteristic.uuid, "flags": characteristic.flags,
          "property": index.map { profile.properties[$0].name } ?? "-",
        ])
    }
    return resolution
  }
}
