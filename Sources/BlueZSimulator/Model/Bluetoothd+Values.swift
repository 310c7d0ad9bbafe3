import DBus

/// Reading and writing.
extension Bluetoothd {
  mutating func read(
    _ request: Request, _ index: Int, _ characteristic: GATTDatabase.Characteristic,
    at now: ContinuousClock.Instant
  ) throws(BlueZError) {
    guard let device = devices[index], device.isUsable else { throw .notConnected }
    let offset = try Self.offset(request.arguments[0])
    for (position, operation) in device.operations.enumerated() {
      if case .read(characteristic.handle, let calls, offset: offset) = operation {
        let joined = Device.Operation.read(characteristic.handle, calls + [request.id], offset: offset)
        devices[index]?.operations[position] = joined
        return
      }
    }
    perform(.read(characteristic.handle, [request.id], offset: offset), index, at: now)
  }

  mutating func write(
    _ request: Request, _ index: Int, _ characteristic: GATTDatabase.Characteristic,
    at now: ContinuousClock.Instant
  ) throws(BlueZError) {
    guard let device = devices[index], device.isUsable else { throw .notConnected }
    let isBusy = device.operations.contains { operation in
      if case .write(characteristic.handle, _, _, offset: _) = operation { true } else { false }
    }
    if isBusy { throw .inProgress }
    let bytes = request.arguments[0].byteArray ?? []
    let offset = try Self.offset(request.arguments[1])
    switch try Self.text(request.arguments[1], "type") {
    case "command":
      guard bytes.count <= Int(Self.mtu) - 3 else { throw .failed("Failed to initiate write") }
      // Sent even where only "write" is offered, and there the micro:bit's stack drops it unanswered.
      emit(.reply(request.id, []))
    case nil, "request", "reliable":
      perform(.write(characteristic.handle, bytes, request.id, offset: offset), index, at: now)
    default: throw .notSupported
    }
  }

  private static func offset(_ options: DBusValue) throws(BlueZError) -> Int {
    switch options.map?["offset"] {
    case nil: 0
    case .uint16(let offset): Int(offset)
    default: throw .invalidArguments
    }
  }

  private static func text(_ options: DBusValue, _ key: String) throws(BlueZError) -> String? {
    switch options.map?[key] {
    case nil: nil
    case .string(let text): text
    default: throw .invalidArguments
    }
  }

  // MARK: ATT

  /// Sends a request, after those that wait already: there is one at a time on a link.
  private mutating func perform(
    _ operation: Device.Operation, _ index: Int, at now: ContinuousClock.Instant
  ) {
    guard timing.attribute > .zero, let device = devices[index] else {
      return complete(operation, index, at: now)
    }
    devices[index]?.operations.append(operation)
    if device.operations.isEmpty { awaitAnswer(index, device.attempt, at: now) }
  }

  private mutating func awaitAnswer(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    schedule.add(.answered(peripheral: index, attempt: attempt), at: now + timing.attribute)
  }

  mutating func answer(_ index: Int, _ attempt: UInt64, at now: ContinuousClock.Instant) {
    guard let device = devices[index], device.attempt == attempt, !device.operations.isEmpty,
      // Out of reach no answer comes: the loss of the link will end the request.
      peripherals[index].inRange
    else { return }
    devices[index]?.operations.removeFirst()
    complete(device.operations[0], index, at: now)
    if device.operations.count > 1 { awaitAnswer(index, attempt, at: now) }
  }

  private mutating func complete(
    _ operation: Device.Operation, _ index: Int, at now: ContinuousClock.Instant
  ) {
    switch operation {
    case .read(let handle, let calls, let offset):
      do throws(BlueZError) {
        let bytes = try content(of: handle, index, from: offset, at: now)
        change(characteristic: handle, of: index, "Value", .bytes(bytes))
        for call in calls { emit(.reply(call, [.bytes(bytes)])) }
      } catch {
        for call in calls { emit(.refuse(call, error)) }
      }
    case .write(let handle, let bytes, let call, let offset):
      do throws(BlueZError) {
        try accept(bytes, offset: offset, handle, index, at: now)
        emit(.reply(call, []))
      } catch {
        emit(.refuse(call, error))
      }
    }
  }

  /// What the peripheral answers to a read.
  private func content(
    of handle: UInt16, _ index: Int, from offset: Int, at now: ContinuousClock.Instant
  ) throws(BlueZError) -> [UInt8] {
    let peripheral = peripherals[index]
    guard let characteristic = peripheral.database.characteristic(handle), characteristic.isReadable else {
      throw .readNotPermitted
    }
    let bytes: [UInt8]
    switch characteristic.content {
    case .fixed(let fixed), .fixedAndCached(let fixed): bytes = fixed
    case .temperature: bytes = peripheral.microBit?.value(at: now) ?? []
    case .period: bytes = peripheral.microBit?.periodBytes ?? []
    case .clientFeatures: bytes = [0]
    case .nothing: bytes = []
    }
    guard offset <= bytes.count else { throw .invalidOffset }
    return Array(bytes[offset...])
  }

  /// What the peripheral answers to a write.
  private mutating func accept(
    _ bytes: [UInt8], offset: Int, _ handle: UInt16, _ index: Int, at now: ContinuousClock.Instant
  ) throws(BlueZError) {
    guard let characteristic = peripherals[index].database.characteristic(handle), characteristic.isWritable
    else { throw .writeNotPermitted }
    if offset > 0 { throw .invalidOffset }
    guard case .period = characteristic.content else { return }
    guard peripherals[index].microBit?.writePeriod(bytes, at: now) == true else { throw .invalidLength }
  }
}
