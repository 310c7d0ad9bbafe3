import BlueZ
import EventLoop
import GATT

/// Reads one property of a device on request.
///
/// While one read is in flight, all further ones wait for the next, so that each gets a value that was read after it was
/// requested.
@LoopActor final class PropertyReader {
  private var waiting: [@LoopActor (Outcome) -> Void] = []
  /// The maximum number of waiting reads; further ones fail.
  private static let most = 64
  private var isReading = false
  private unowned let channel: Channel
  private unowned let device: Device

  init(for channel: Channel, of device: Device) {
    self.channel = channel
    self.device = device
  }

  /// Reads the value now; connects to a device that is connected on demand.
  func get(_ reply: @escaping @LoopActor (Outcome) -> Void) {
    device.session.withLink { [self, device] obstacle in
      withExtendedLifetime(device) {
        if let obstacle { reply(.failed(reason: obstacle)) } else { read(reply) }
      }
    }
  }

  /// Reads the value on the link that there is.
  func read(_ reply: @escaping @LoopActor (Outcome) -> Void) {
    guard waiting.count < Self.most else {
      return reply(.failed(reason: "\(Self.most) reads of \(channel.property.name) are waiting already"))
    }
    waiting.append(reply)
    if !isReading { readNext() }
  }

  private func readNext() {
    let replies = waiting
    waiting = []
    guard !replies.isEmpty else { return }
    guard channel.characteristic != nil, device.isLive else {
      let outcome = Outcome.failed(reason: channel.obstacle ?? device.offlineReason)
      for reply in replies { reply(outcome) }
      return
    }
    isReading = true
    device.task { [self] central in
      let outcome = await read(on: central)
      for reply in replies { reply(outcome) }
      isReading = false
      readNext()
    }
  }

  private func read(on central: Central) async -> Outcome {
    switch await channel.readEncoded(on: central) {
    case .success(let held):
      if !channel.areReadsNotified { channel.reportReading(of: held.value) }
      return .read(actual: channel.withOffset(held.value))
    case .failure(let failure):
      if failure == .timeout { device.session.linkSession?.feed(.unresponsive) }
      return .failed(reason: "\(failure)")
    }
  }
}
