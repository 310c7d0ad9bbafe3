import EventLoop
import DBus
import GATT
import Peripherals

/// An error that bluetoothd passes on to the central as an ATT error (`dbus_to_att_error` in `src/gatt-database.c`).
enum AttributeError: String, Error {
  /// 0x07.
  case invalidOffset = "org.bluez.Error.InvalidOffset"
  /// 0x0D.
  case invalidValueLength = "org.bluez.Error.InvalidValueLength"
  /// 0x02 for a read, 0x03 for a write.
  case notPermitted = "org.bluez.Error.NotPermitted"
}

/// The objects that bluetoothd sees: answers the calls to them, and notifies the values of the peripheral.
///
/// A pure state machine: its inputs return what to send.
struct ServedObjects: Sendable {
  /// What follows from a call.
  struct Outcome: Sendable {
    let answer: DBusAnswer
    /// A signal to send after the answer.
    var signal: DBusSignal?
    /// The central has written a property.
    var written: (Property, [UInt8])?
    /// bluetoothd has ended the advertisement.
    var hasReleased = false
  }

  private let application: GATTApplication
  private let advertisement: Advertisement
  private var peripheral: ServedPeripheral
  /// Queues for the characteristics with indications and subscribers, by handle.
  private var indications: [UInt16: IndicationQueue] = [:]

  /// - Parameter name: the advertised name.
  init(_ peripheral: ServedPeripheral, name: String) {
    self.peripheral = peripheral
    application = GATTApplication(peripheral.values.database)
    advertisement = Advertisement(name: name, peripheral.profile)
  }

  // MARK: Calls

  mutating func answer(_ call: DBusCall, at now: Moment) -> Outcome {
    switch (call.interface, call.member) {
    case (DBusName.objectManager, "GetManagedObjects") where call.path == GATTApplication.path:
      return .reply(application.managedObjects)
    case (DBusName.properties, "GetAll"):
      return .reply(.properties(properties(call.path, call.arguments.first?.text)))
    case (DBusName.properties, "Get"):
      let name = call.arguments.count > 1 ? call.arguments[1].text : nil
      let properties = properties(call.path, call.arguments.first?.text)
      guard let value = properties.first(where: { $0.0 == name })?.1 else {
        return .failure(.remote(name: DBusName.Failure.invalidArguments, message: "No such property"))
      }
      return .reply(.variant(value))
    case (BlueZName.advertisement, "Release") where call.path == Advertisement.path:
      return Outcome(answer: .success([]), hasReleased: true)
    case (BlueZName.characteristic, _):
      guard let characteristic = application.characteristic(at: call.path) else {
        return .failure(.remote(name: DBusName.Failure.unknownObject, message: "No such characteristic"))
      }
      do throws(AttributeError) {
        return try answer(call, characteristic, at: now)
      } catch {
        return .failure(.remote(name: error.rawValue, message: "\(error)"))
      }
    default:
      return .failure(.noSuchMethod)
    }
  }

  private func properties(_ path: String, _ interface: String?) -> [(String, DBusValue)] {
    if path == Advertisement.path {
      return interface == BlueZName.advertisement ? advertisement.properties : []
    }
    return application.properties(path, interface)
  }

  private mutating func answer(
    _ call: DBusCall, _ characteristic: GATTDatabase.Characteristic, at now: Moment
  ) throws(AttributeError) -> Outcome {
    let handle = characteristic.handle
    switch call.member {
    case "ReadValue":
      guard characteristic.isReadable else { throw .notPermitted }
      let bytes = peripheral.values.value(of: characteristic, at: now)
      let offset = Self.offset(call.arguments.first)
      guard (0...bytes.count).contains(offset) else { throw .invalidOffset }
      return .reply(.bytes(Array(bytes[offset...])))
    case "WriteValue":
      guard characteristic.isWritable || characteristic.takesCommands else { throw .notPermitted }
      guard let bytes = call.arguments.first?.byteArray, Self.offset(call.arguments.last) == 0 else {
        throw .invalidOffset
      }
      guard peripheral.values.write(bytes, to: characteristic, at: now) else { throw .invalidValueLength }
      return Outcome(answer: .success([]), written: peripheral.property(of: handle).map { ($0, bytes) })
    case "StartNotify", "StopNotify":
      peripheral.subscribe(handle, call.member == "StartNotify", at: now)
      if characteristic.indicates { indications[handle] = IndicationQueue() }
      return .reply()
    case "Confirm":
      let bytes = indications[handle]?.next(at: now)
      return Outcome(answer: .success([]), signal: bytes.flatMap { signal($0, of: handle) })
    default:
      return .failure(.noSuchMethod)
    }
  }

  /// The option `offset` of a read or write.
  private static func offset(_ options: DBusValue?) -> Int { options?.map?["offset"]?.integer ?? 0 }

  // MARK: Values

  /// When ``advance(to:)`` is to be called next; nil: only after another input.
  var next: Moment? { peripheral.next }

  /// - Returns: the notifications to send.
  mutating func advance(to now: Moment) -> [DBusSignal] {
    signals(peripheral.advance(to: now), at: now)
  }

  /// - Returns: the notifications to send.
  mutating func set(
    _ property: Property, to value: Value, at now: Moment
  ) throws(PeripheralError) -> [DBusSignal] {
    signals(try peripheral.set(property, to: value, at: now), at: now)
  }

  /// All links have ended.
  mutating func endSubscriptions() {
    peripheral.unsubscribeAll()
    indications = [:]
  }

  private mutating func signals(
    _ notifications: [PeripheralValues.Notification], at now: Moment
  ) -> [DBusSignal] {
    notifications.compactMap { notification in
      let handle = notification.handle
      guard indications[handle] != nil else { return signal(notification.bytes, of: handle) }
      return indications[handle]?.add(notification.bytes, at: now).flatMap { signal($0, of: handle) }
    }
  }

  private func signal(_ bytes: [UInt8], of handle: UInt16) -> DBusSignal? {
    application.path(of: handle).map { path in
      .propertiesChanged(path, BlueZName.characteristic, .properties(["Value": .bytes(bytes)]))
    }
  }
}

extension ServedObjects.Outcome {
  fileprivate static func reply(_ arguments: DBusValue...) -> Self { Self(answer: .success(arguments)) }

  fileprivate static func failure(_ error: DBusError) -> Self { Self(answer: .failure(error)) }
}
