import BlueZ
import Configuration
import GATT

/// Which of several devices is it? It shows its name.
extension DeviceManager {
  private static let blinks = 3
  private static let blinkTime = Duration.milliseconds(500)

  /// Shows the name of the device on its LEDs; without a property for texts, lets them blink.
  ///
  /// - Returns: the property that was written, and the text that it shows.
  package func identify(_ id: DeviceID) async throws(RequestError) -> (property: String, text: String?) {
    let device = try requireDevice(id)
    let displays = device.description.profile.displays.map { device.channels[$0] }
    guard !displays.isEmpty else {
      throw RequestError(.invalid, "\(id) cannot show anything: led_text or led must be among its properties")
    }
    if let obstacle = await link(to: device, Deadline(after: Visits.waitLimit, loop)) {
      throw RequestError("\(id): \(obstacle)")
    }
    defer { device.taskEnded() }
    guard let channel = displays.first(where: { $0.characteristic != nil }),
      let characteristic = channel.characteristic
    else { throw RequestError(.failed, "\(id) cannot show anything: its program has no LED service") }
    let central = device.session.adapter.central
    let property = channel.property
    do throws(CentralError) {
      if let pictures = property.codec.pictures {
        try await blink(pictures, characteristic, on: central)
        return (property.name, nil)
      }
      let text = device.description.shownName(longest: property.maxLength ?? 20)
      try await central.send(Array(text.utf8), to: characteristic, withResponse: true)
      return (property.name, text)
    } catch {
      throw RequestError(.failed, "\(id): \(error)")
    }
  }

  /// Then the LEDs show what they showed before. The desired value stays.
  private func blink(
    _ pictures: (full: [UInt8], empty: [UInt8]), _ characteristic: Characteristic, on central: Central
  ) async throws(CentralError) {
    let before = try await central.read(characteristic)
    for _ in 0..<Self.blinks {
      for picture in [pictures.full, pictures.empty] {
        try await central.send(picture, to: characteristic, withResponse: true)
        try? await loop.sleep(for: Self.blinkTime)
      }
    }
    try await central.send(before, to: characteristic, withResponse: true)
  }
}

extension Profile {
  /// The properties that can show which device it is, by their indices: those for texts first.
  fileprivate var displays: [Int] {
    ["led_text", "led"].compactMap { name in
      properties.firstIndex { property in
        property.name == name && property.isWritable
          && (property.codec == .utf8 || property.isReadable && property.codec.pictures != nil)
      }
    }
  }
}

extension Codec {
  /// All dots, and none; nil if it is not for pictures.
  fileprivate var pictures: (full: [UInt8], empty: [UInt8])? {
    guard case .scalar(let scalar) = description, scalar.type == .bits else { return nil }
    func picture(_ dot: String) -> [UInt8]? {
      let row = String(repeating: dot, count: scalar.columns)
      return try? encode(.text(Array(repeating: row, count: scalar.rows).joined(separator: "/")))
    }
    guard let full = picture("#"), let empty = picture(".") else { return nil }
    return (full, empty)
  }
}

extension DeviceDescription {
  /// Whether it may be able to show which device it is.
  package var mayIdentify: Bool { profile.displays.contains { mayOffer(profile.properties[$0].name) } }

  /// The name that its LEDs show, whose font has the printable characters of ASCII.
  func shownName(longest: Int) -> String {
    let name = configuredName ?? bluetoothName.flatMap(Profile.microbitLetters) ?? id.description
    let isShown = name.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    return String((isShown ? name : TopicWord.similar(to: name) ?? id.description).prefix(longest))
  }
}
