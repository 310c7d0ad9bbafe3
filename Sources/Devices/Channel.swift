import BlueZ
import EventLoop
import GATT
import Log

/// A property of one device: its characteristic while there is a link, its value, and its writes.
final class Channel: @unchecked Sendable {
  // @unchecked: used on the loop's thread alone.

  let index: Int
  let property: Property
  /// While there is a link that offers it.
  private(set) var characteristic: Characteristic?
  /// The last one that was received in this run; nil of an event.
  private(set) var value: Value?
  /// Nil: it cannot be written.
  private(set) var writer: PropertyWriter?
  /// The last value could not be decoded: logged once, until one can.
  private var isMalformed = false
  /// It is read because bluetoothd does not notify it: logged once, until it does.
  private var isPolled = false
  /// For a property that comes in pieces, and what ends the wait for the rest.
  private var frames: FrameAssembler?
  private var frameTimer: LoopTimer?
  private unowned let device: Device

  private var context: DeviceContext { device.context }

  init(index: Int, of device: Device, desired: DesiredValue) {
    self.index = index
    property = device.description.profile.properties[index]
    self.device = device
    frames = property.frame.map { FrameAssembler(delimiter: $0) }
    if property.isWritable { writer = PropertyWriter(for: self, of: device, desired: desired) }
  }

  // MARK: The link

  /// The property's characteristic on a new link, or after the peripheral has changed its services.
  func resolve(_ characteristic: Characteristic?) {
    self.characteristic = characteristic
    isMalformed = false
  }

  /// The link, or its characteristic, is gone.
  func linkEnded() {
    flushFrame()
    characteristic = nil
    writer?.linkEnded()
  }

  /// The link is live. What can never be carried out fails.
  func linkIsLive() {
    if characteristic == nil {
      writer?.abandon(reason: "the device does not offer \(property.name)")
    } else {
      writer?.linkIsLive()
    }
  }

  /// Does something on the link. The device may be removed meanwhile: it stays until that is done.
  func task(_ body: @escaping @Sendable (isolated Central) async -> Void) {
    context.loop.task(of: context.central) { [device] central in
      await body(central)
      withExtendedLifetime(device) {}
    }
  }

  // MARK: Values

  /// Reads and subscribes, as far as the property is meant to be. The value is read first: no reading is missed in
  /// between, and none comes twice, since the signal of a read comes before its answer.
  func subscribe(on central: isolated Central) async throws(CentralError) {
    guard let characteristic else { return }
    let isRead =
      property.kind == .state && property.isReadable && (property.isNotifying || !property.isWritable)
    if isRead { received(try await central.read(characteristic)) }
    guard property.isNotifying, property.notify != .poll else {
      if let interval = property.poll ?? (property.notify == .poll ? .seconds(1) : nil) {
        poll(characteristic, every: interval)
      }
      return
    }
    let method: NotificationMethod? =
      switch property.notify {
      case .signal: .signal
      case .socket: .socket
      case .poll, nil: nil
      }
    do throws(CentralError) {
      // Held until the link ends, and the device with it.
      try await central.subscribe(to: characteristic, by: method) { [self, device] bytes in
        withExtendedLifetime(device) { received(bytes) }
      }
      isPolled = false
    } catch .notifyAcquired where property.isReadable && property.kind == .state {
      pollInstead(characteristic)
    }
  }

  /// It cannot be used on this link, which goes on without it.
  func leaveOut(because error: CentralError) {
    context.log.warning("\(property.name) cannot be used: \(error)", device.fields)
    characteristic = nil
  }

  /// bluetoothd does not notify it: it is read once a period, and at most once a second.
  private func pollInstead(_ characteristic: Characteristic) {
    if !isPolled {
      context.log.warning(
        """
        another program takes the notifications of \(property.name): reading it instead. If there is no such \
        program, bluetoothd is stuck (a fault before its version 5.84): sudo systemctl restart bluetooth
        """, device.fields)
    }
    isPolled = true
    task { [self] central in
      let isNotified = await central.poll(characteristic, every: { self.device.pollInterval }) {
        self.polled($0)
      }
      guard isNotified else { return }
      isPolled = false
      context.log.notice("\(property.name) is notified again", device.fields)
    }
  }

  private func poll(_ characteristic: Characteristic, every interval: Duration) {
    task { [self] central in
      await central.poll(characteristic, every: interval) { self.polled($0) }
    }
  }

  private func polled(_ result: Result<[UInt8], CentralError>) {
    switch result {
    case .success(let bytes): received(bytes)
    case .failure(.timedOut): device.session.unresponsive()
    case .failure(let error): context.log.debug("cannot read \(property.name): \(error)", device.fields)
    }
  }

  /// Bytes came: on the path of every notification.
  private func received(_ bytes: [UInt8]) {
    // A link that is being left lasts a little longer.
    guard device.session.isReceiving else { return }
    if frames == nil { decode(bytes) } else { assemble(bytes) }
  }

  /// How long the end of a frame may follow its beginning.
  private static let frameTimeout = Duration.milliseconds(500)

  private func assemble(_ bytes: [UInt8]) {
    for frame in frames?.append(bytes) ?? [] { decode(frame) }
    frameTimer?.cancel()
    guard frames?.isIncomplete == true else { return }
    frameTimer = context.loop.timer(after: Self.frameTimeout) { [weak self] in self?.flushFrame() }
  }

  private func flushFrame() {
    frameTimer?.cancel()
    guard frames?.isIncomplete == true, let frame = frames?.flush() else { return }
    decode(frame)
  }

  private func decode(_ bytes: [UInt8]) {
    let value: Value
    do throws(CodecError) {
      value = try property.codec.decode(bytes)
    } catch {
      context.counters.malformed += 1
      if !isMalformed {
        isMalformed = true
        context.log.warning("ignoring a malformed value of \(property.name): \(error)", device.fields)
      }
      return
    }
    isMalformed = false
    publish(value)
  }

  private func publish(_ value: Value) {
    if property.kind == .state { self.value = value }
    device.publish(value, of: self)
  }

  // MARK: Commands

  func execute(_ command: Command) {
    guard let writer else { return command.reply(.rejected(reason: "\(property.name) cannot be set")) }
    writer.execute(command)
  }

  /// Reads the value now.
  func get(_ reply: @escaping @Sendable (Outcome) -> Void) {
    guard let characteristic, device.isLive else {
      return reply(.failed(reason: obstacle ?? "the device is offline"))
    }
    task { [self] central in
      do throws(CentralError) {
        let bytes = try await central.read(characteristic)
        let value = try? property.codec.decode(bytes)
        guard let value else { return reply(.failed(reason: "the device returned a malformed value")) }
        if !property.isNotifying { publish(value) }
        reply(.read(actual: value))
      } catch {
        if case .timedOut = error { device.session.unresponsive() }
        reply(.failed(reason: "\(error)"))
      }
    }
  }

  /// Why a command can never be carried out, not even later.
  var obstacle: String? {
    device.obstacle
      ?? (device.isLive && characteristic == nil ? "the device does not offer \(property.name)" : nil)
  }

  /// What the device holds, as a read says that a write or a new link needed: no reading.
  func wasReadBack(_ value: Value) {
    self.value = value
    device.wasReadBack(value, of: self)
  }
}
