import DBus
import Peripherals

/// Reads and writes.
extension Bluetoothd {
  mutating func read(
    _ request: DBusCall, _ index: DeviceKey, _ characteristic: GATTDatabase.Characteristic
  ) throws(DBusError) {
    guard let device = devices[index], device.isUsable else { throw .notConnected }
    let offset = try Self.offset(request.arguments[0])
    for (position, operation) in device.operations.enumerated() {
      if case .read(characteristic.handle, let calls, offset: offset) = operation {
        let joined = Device.Operation.read(characteristic.handle, calls + [request], offset: offset)
        devices[index]?.operations[position] = joined
        return
      }
    }
    perform(.read(characteristic.handle, [request], offset: offset), index)
  }

  mutating func write(
    _ request: DBusCall, _ index: DeviceKey, _ characteristic: GATTDatabase.Characteristic
  ) throws(DBusError) {
    guard let device = devices[index], device.isUsable else { throw .notConnected }
    let isBusy = device.operations.contains { operation in
      if case .write(characteristic.handle, _, _, offset: _) = operation { true } else { false }
    }
    if isBusy { throw .inProgress }
    let bytes = request.arguments[0].byteArray ?? []
    let offset = try Self.offset(request.arguments[1])
    switch try Self.text(request.arguments[1], "type") {
    case nil where !characteristic.isWritable && !characteristic.takesCommands: throw .notSupported
    case nil where !characteristic.isWritable, "command":
      guard bytes.count <= Int(Self.mtu) - 3 else { throw .failed("Failed to initiate write") }
      // The command is sent even if only "write" is supported; then the peripheral ignores it.
      let isReceived = peripherals[index].radio.inRange && !demandsPairing(index, characteristic.handle)
      if characteristic.takesCommands, isReceived { _ = apply(bytes, index, characteristic) }
      reply(to: request)
    case nil, "request", "reliable":
      perform(.write(characteristic.handle, bytes, request, offset: offset), index)
    default: throw .notSupported
    }
  }

  private static func offset(_ options: DBusValue) throws(DBusError) -> Int {
    switch options.map?["offset"] {
    case nil: 0
    case .uint16(let offset): Int(offset)
    default: throw .invalidArguments
    }
  }

  private static func text(_ options: DBusValue, _ key: String) throws(DBusError) -> String? {
    switch options.map?[key] {
    case nil: nil
    case .string(let text): text
    default: throw .invalidArguments
    }
  }

  // MARK: ATT

  /// Queues a request: there is one at a time on a link.
  mutating func perform(_ operation: Device.Operation, _ index: DeviceKey) {
    guard let device = devices[index] else { return }
    devices[index]?.operations.append(operation)
    if device.operations.isEmpty { send(index) }
  }

  /// Sends the first queued request.
  private mutating func send(_ index: DeviceKey) {
    guard let operation = devices[index]?.operations.first else { return }
    if demandsPairing(index, operation.handle) {
      // bluetoothd asks an agent to confirm the pairing, and there is none.
      planForLink(of: index, after: .seconds(30)) { $0.endPairing(index) }
    } else if let fault = nextSubscriptionFault(operation, index) {
      apply(fault, operation, index)
    } else {
      planForLink(of: index, after: timing.attribute) { $0.answer(index) }
    }
  }

  /// Whether the peripheral requires encryption for a characteristic.
  private func demandsPairing(_ index: DeviceKey, _ handle: UInt16) -> Bool {
    peripherals[index].security.isRequired && !bonds.contains(index)
      && !peripherals[index].database.isOpen(handle)
  }

  private mutating func nextSubscriptionFault(
    _ operation: Device.Operation, _ index: DeviceKey
  ) -> LinkFault? {
    switch operation {
    case .read, .write: return nil
    case .subscribe, .acquire: break
    }
    guard var fault = peripherals[index].subscriptionFault else { return nil }
    fault.count -= 1
    peripherals[index].subscriptionFault = fault.count > 0 ? fault : nil
    return fault.fault
  }

  private mutating func apply(_ fault: LinkFault, _ operation: Device.Operation, _ index: DeviceKey) {
    switch fault {
    case .drop: hangUp(index)
    case .silence(let duration): planForLink(of: index, after: duration) { $0.hangUp(index) }
    case .error(let code):
      devices[index]?.operations.removeFirst()
      fail(operation, .attribute(code), index)
      send(index)
    }
  }

  /// The peripheral answers the first queued request.
  private mutating func answer(_ index: DeviceKey) {
    guard let device = devices[index], !device.operations.isEmpty else { return }
    // Out of range there is no answer. The radio sends again until the link ends.
    guard peripherals[index].radio.inRange else {
      return planForLink(of: index, after: .milliseconds(50)) { $0.answer(index) }
    }
    devices[index]?.operations.removeFirst()
    complete(device.operations[0], index)
    send(index)
  }

  /// The peripheral has rejected the request, or its link has ended.
  mutating func fail(_ operation: Device.Operation, _ error: DBusError, _ index: DeviceKey) {
    switch operation {
    case .read(_, let calls, _): for call in calls { refuse(call, error) }
    case .write(_, _, let call, _): refuse(call, error)
    case .subscribe(let handle, let calls): refuse(calls, error, index, handle)
    case .acquire(let handle, _):
      // There is no reply, and the notifications remain acquired.
      guard case .asked = devices[index]?.subscriptions[handle]?.socket else { return }
      devices[index]?.subscriptions[handle]?.socket = .stuck
    }
  }

  private mutating func complete(_ operation: Device.Operation, _ index: DeviceKey) {
    do throws(DBusError) {
      switch operation {
      case .read(let handle, let calls, let offset):
        let bytes = try content(of: handle, index, from: offset)
        change(characteristic: handle, of: index, "Value", .bytes(bytes))
        for call in calls { reply(to: call, .bytes(bytes)) }
      case .write(let handle, let bytes, let call, let offset):
        try accept(bytes, offset: offset, handle, index)
        reply(to: call)
      case .subscribe(let handle, let calls): subscribed(calls, index, handle)
      case .acquire(let handle, let call): acquired(call, index, handle)
      }
    } catch {
      fail(operation, error, index)
    }
  }

  /// The peripheral's response to a read.
  private func content(of handle: UInt16, _ index: DeviceKey, from offset: Int) throws(DBusError) -> [UInt8] {
    let peripheral = peripherals[index]
    guard let characteristic = peripheral.database.characteristic(handle), characteristic.isReadable else {
      throw .readNotPermitted
    }
    let bytes = peripheral.values.value(of: characteristic, at: now)
    guard offset <= bytes.count else { throw .invalidOffset }
    return Array(bytes[offset...])
  }

  /// The peripheral's response to a write.
  private mutating func accept(
    _ bytes: [UInt8], offset: Int, _ handle: UInt16, _ index: DeviceKey
  ) throws(DBusError) {
    guard let characteristic = peripherals[index].database.characteristic(handle), characteristic.isWritable
    else { throw .writeNotPermitted }
    if offset > 0 { throw .invalidOffset }
    guard apply(bytes, index, characteristic) else { throw .invalidLength }
  }

  /// Applies a write; false if its length is invalid.
  private mutating func apply(
    _ bytes: [UInt8], _ index: DeviceKey, _ characteristic: GATTDatabase.Characteristic
  ) -> Bool {
    guard peripherals[index].values.write(bytes, to: characteristic, at: now) else { return false }
    peripherals[index].writes[characteristic.handle, default: Writes()].append(bytes)
    expectValues(of: index.peripheral)
    return true
  }
}
