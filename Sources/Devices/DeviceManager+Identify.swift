import BlueZ
import Configuration
import EventLoop
import GATT

/// Identifying a device among several: its LEDs show its name, or blink.
extension DeviceManager {
  private static let blinks = 3
  private static let blinkTime = Duration.milliseconds(500)

  /// Shows the name of the device on its LEDs; without a property for texts, lets them blink. Afterwards the LEDs show
  /// what is desired, or else what they showed before.
  ///
  /// - Returns: the property that was written, and the text that it shows.
  package func identify(_ id: DeviceID) async throws(RequestError) -> (property: String, text: String?) {
    let device = try requireDevice(id)
    _ = try device.session.requireLinkSession()
    let displays = device.description.profile.displays.map { device.channels[$0] }
    guard !displays.isEmpty else {
      throw RequestError(
        .invalid, "\(id) cannot show anything: led_text or led must be among its properties")
    }
    guard !device.isIdentifying else { throw RequestError("\(id) shows its name already") }
    device.isIdentifying = true
    defer { device.isIdentifying = false }
    if let obstacle = await link(to: device) { throw RequestError("\(id): \(obstacle)") }
    defer { device.taskEnded() }
    guard let channel = displays.first(where: { $0.characteristic != nil }),
      let characteristic = channel.characteristic
    else { throw RequestError(.failed, "\(id) cannot show anything: its program has no LED service") }
    let property = channel.property
    // Commands for the property wait meanwhile.
    await channel.writer?.mutex.lock()
    defer { channel.writer?.mutex.unlock() }
    do throws(CentralError) {
      if property.isLEDMatrix {
        try await blink(characteristic, of: device)
        return (property.name, nil)
      }
      let text = device.description.shownName(longest: property.maxLength ?? 20)
      try await show(text, characteristic, of: device)
      return (property.name, text)
    } catch {
      throw RequestError(.failed, "\(id): \(error)")
    }
  }

  private func blink(_ characteristic: Characteristic, of device: Device) async throws(CentralError) {
    let central = device.session.central
    device.noteLEDs(try await central.read(characteristic).get())
    for _ in 0..<Self.blinks {
      for picture in [Device.fullPicture, Device.emptyPicture] {
        try await central.write(picture, to: characteristic, withResponse: true)
        try? await loop.sleep(for: Self.blinkTime)
      }
    }
    try await device.restoreLEDs(on: central)
  }

  private func show(
    _ text: String, _ characteristic: Characteristic, of device: Device
  ) async throws(CentralError) {
    let central = device.session.central
    let leds = device.leds
    if let leds = leds?.characteristic { device.noteLEDs(try await central.read(leds).get()) }
    try await central.write(Array(text.utf8), to: characteristic, withResponse: true)
    guard let leds else { return }
    try? await loop.sleep(for: device.scrollTime(of: text))
    await leds.writer?.mutex.lock()
    defer { leds.writer?.mutex.unlock() }
    try await device.restoreLEDs(on: central)
  }
}

/// What the LEDs showed before they were used for something else is stored until they show it again: a link that is lost
/// leaves them lit, or dark.
extension Device {
  /// The property for pictures on the LEDs, if the link offers it.
  fileprivate var leds: Channel? {
    description.profile.displays.map { channels[$0] }
      .first { $0.characteristic != nil && $0.property.isLEDMatrix }
  }

  private var picture: Characteristic? {
    leds?.characteristic ?? session.linkSession?.services.resolution?.leds
  }

  /// - Parameter bytes: what the LEDs show before they are used; a second use at the same time does not replace it.
  fileprivate func noteLEDs(_ bytes: [UInt8]) { context.store.change(address) { $0.leds = $0.leds ?? bytes } }

  /// Shows what is desired, or else what was noted.
  fileprivate func restoreLEDs(on central: Central) async throws(CentralError) {
    guard let picture, let before = record.leds else { return }
    let bytes = leds?.writer?.desired?.bytes ?? before
    try await central.write(bytes, to: picture, withResponse: true)
    context.store.change(address) { $0.leds = nil }
    leds?.wasRestored(to: bytes)
  }

  /// The letter A: the micro:bit waits for a press of its button A.
  static let pressSign: [UInt8] = [0b01110, 0b10001, 0b11111, 0b10001, 0b10001]
  /// All LEDs are on.
  fileprivate static let fullPicture = [UInt8](repeating: 0b11111, count: 5)
  fileprivate static let emptyPicture = [UInt8](repeating: 0, count: 5)

  /// Shows the sign while a press is awaited. Else, if the LEDs still show that, or a picture of the blinking, or nothing, as
  /// after a text, restores them.
  func updateLEDs() {
    guard
      record.leds != nil
        || context.scheduler.awaitsPress(self) && session.linkSession?.services.resolution?.leds != nil,
      picture != nil
    else { return }
    task { [self] central in await updateLEDs(on: central, mayShowSign: true) }
  }

  /// Restores the LEDs before the link ends, as they would keep what they show, or before they show a text.
  /// - Parameter end: whether the device then does something else.
  func releaseLEDs(then end: @escaping @LoopActor (_ isBusy: Bool) -> Void) {
    guard isLive, record.leds != nil, picture != nil else { return end(isBusy) }
    task { [self] central in
      await updateLEDs(on: central, mayShowSign: false)
      end(tasks > 1)
    }
  }

  private func updateLEDs(on central: Central, mayShowSign: Bool) async {
    let mutex = leds?.writer?.mutex ?? ledMutex
    await mutex.lock()
    defer { mutex.unlock() }
    guard let picture, let shown = try? await central.read(picture).get() else { return }
    if mayShowSign, context.scheduler.awaitsPress(self) {
      guard shown != Self.pressSign else { return }
      noteLEDs(shown)
      try? await central.write(Self.pressSign, to: picture, withResponse: true)
    } else if [Self.fullPicture, Self.emptyPicture, Self.pressSign].contains(shown) {
      try? await restoreLEDs(on: central)
    } else {
      context.store.change(address) { $0.leds = nil }
    }
  }

  /// The maximum time for which a slow text keeps its device.
  private static let longestScroll = Duration.seconds(30)

  /// A character takes six columns, one of them empty; after the last one the five columns of the display pass.
  fileprivate func scrollTime(of text: String) -> Duration {
    let delay = channels.first { $0.property.name == Property.microbitScrollDelay.name }?.last.value
    guard case .integer(let milliseconds) = delay ?? .integer(120) else { return .zero }
    return min(.milliseconds(max(0, min(milliseconds, 10_000)) * (6 * text.count + 5)), Self.longestScroll)
  }
}

extension Profile {
  /// The properties that can show which device it is, by their indices: those for texts first.
  fileprivate var displays: [Int] {
    ["led_text", "led"].compactMap { name in
      properties.firstIndex { property in
        property.name == name && property.isWritable
          && (property.codec == .utf8 || property.isReadable && property.isLEDMatrix)
      }
    }
  }
}

extension Property {
  /// Whether its values are pictures on the LEDs of a micro:bit.
  fileprivate var isLEDMatrix: Bool { characteristic == Property.microbitLEDMatrix.characteristic }
}

extension DeviceDescription {
  /// Whether the device may be able to show which one it is.
  package var mayIdentify: Bool { profile.displays.contains { mayOffer(profile.properties[$0].name) } }

  /// The name that its LEDs show, whose font has the printable characters of ASCII.
  func shownName(longest: Int) -> String {
    let names = [
      settings.name ?? letters, settings.name.flatMap(TopicWord.similar), id.description, letters,
    ]
    let shown = names.compactMap(\.self).first { $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } }
    return String((shown ?? address.compact).prefix(longest))
  }
}
