import EventLoop
import GATT
import Radio

/// Sends values to micro:bits by radio, through receivers whose program forwards lines. Runs a ``RadioOutbox``.
@LoopActor final class RadioTransmitter {
  /// The receivers; nil: none is read.
  var receivers: RadioReceivers? { didSet { feed { $0.abandon(nil) } } }
  private var outbox = RadioOutbox()
  private var timer = DeadlineTimer()

  nonisolated init() {}

  /// Whether there is a receiver that forwards.
  var canSend: Bool { receivers?.canSend == true }

  /// Why nothing can be sent; nil: it can.
  func problem() -> String? {
    guard let receivers else { return "\"radio\" is not enabled in config.json" }
    return receivers.sendProblem()
  }

  func send(_ command: RadioCommand) { feed { $0.send(command, at: .now) } }
  func echoed(_ target: RadioCommand.Target) -> Bool { outbox.echoed(target) }
  func abandon(_ device: BluetoothAddress) { feed { $0.abandon(device) } }

  private func feed(_ input: (inout RadioOutbox) -> [RadioOutbox.Action]) {
    for action in input(&outbox) {
      switch action {
      case .write(let command):
        let name = command.target.device.radioSender?.name
        let isWritten = name.map { receivers?.send(command.line, to: $0) == true } == true
        if isWritten { outbox.wrote(command.target) }
      case .outcome(let command, let outcome): command.reply(outcome)
      }
    }
    timer.set(outbox.deadline) { [weak self] in self?.feed { $0.timer(at: .now) } }
  }
}
