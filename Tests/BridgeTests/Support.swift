import Configuration
import GATT

@testable import Bridge
@testable import Devices

// Values and descriptions for tests.

extension Value: ExpressibleByIntegerLiteral {
  /// This whole number.
  public init(integerLiteral number: Int) { self = .integer(number) }
}

extension DeviceDescription {
  /// A micro:bit with the properties of the temperature service.
  init(_ id: DeviceID, _ address: BluetoothAddress) {
    self.init(id: id, address: address, profile: .microbitDefault)
  }
}

extension Profile {
  /// The built-in one with the properties of the temperature service.
  static let microbitDefault = Profile.microbit.limited(to: ["temperature", "period"])
}

/// A command as the gateway understands it.
struct ParsedCommand {
  let value: Value
  let ttl: Int?
  let transaction: String?

  private static let device = DeviceID(BluetoothAddress(truncating: 1))

  init(_ payload: [UInt8], for property: Property) throws(Rejection) {
    let command = try Command(
      CommandPayload(payload), Self.device, property.name, property.codec, from: Sender(nil))
    (ttl, transaction) = (command.timeToLive, Sender(command.sender).transaction)
    do throws(RequestError) {
      value = try property.value(ofCommand: command.value).value
    } catch {
      throw Rejection(error.reason, transaction)
    }
  }

  static func parse(_ payload: [UInt8], for property: Property) -> Result<ParsedCommand, Rejection> {
    do throws(Rejection) {
      return .success(try ParsedCommand(payload, for: property))
    } catch {
      return .failure(error)
    }
  }
}
