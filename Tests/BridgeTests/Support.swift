import Configuration
import GATT
import JSON
import TestSupport

@testable import Bridge
@testable import Devices

// Values and descriptions for tests.

extension Value: ExpressibleByIntegerLiteral {
  /// This whole number.
  public init(integerLiteral number: Int) { self = .integer(number) }
}

extension DeviceDescription {
  /// A device with this profile, a micro:bit's properties of the temperature service unless it is given.
  init(
    _ id: DeviceID, _ address: BluetoothAddress,
    _ profile: Profile = .microbitDefault
  ) {
    let settings = DeviceSettings(address, nil, nil, in: Configuration())
    self.init(id: id, settings: settings, record: DeviceRecord(address: address))
    self.settings.adjustedProfile = profile
  }

  /// The device has such an entry in config.json.
  mutating func configure(_ change: (inout Configuration.Device) -> Void) {
    let profile = settings.adjustedProfile
    var entry = Configuration.Device(match: .identifier(address))
    change(&entry)
    settings = DeviceSettings(address, entry, nil, in: Configuration())
    settings.adjustedProfile = profile
  }
}

extension Profile {
  /// The built-in one with the properties of the temperature service.
  static let microbitDefault = Profile.microbit.limited(to: ["temperature", "period"])
}

/// Why a command is refused, and what its sender recognises the answer by.
struct Rejection: Error, Equatable {
  let reason: String
  let transaction: JSONValue?

  init(_ reason: String, _ transaction: JSONValue? = nil) {
    (self.reason, self.transaction) = (reason, transaction)
  }
}

/// A command as the gateway understands it.
struct ParsedCommand {
  let value: Value
  let ttl: Int?
  let transaction: JSONValue?

  private static let device = DeviceID(BluetoothAddress(truncating: 1))

  static func parse(_ payload: [UInt8], for property: Property) -> Result<ParsedCommand, Rejection> {
    var sender = Sender(nil)
    do throws(RequestError) {
      let command = try Command(
        CommandPayload(payload), Self.device, property.name, property.codec, from: &sender)
      return .success(
        ParsedCommand(
          value: try property.value(ofCommand: command.value).value, ttl: command.timeToLive?.seconds,
          transaction: sender.transaction))
    } catch {
      return .failure(Rejection(error.reason, sender.transaction))
    }
  }
}
