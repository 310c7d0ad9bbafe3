import Configuration
import EventLoop
import GATT

@testable import Devices

/// The machine with devices that are numbers, each with what it needs.
struct LinkScheduleBench {
  let start = Moment.now
  var now: Moment
  var schedule: LinkSchedule
  var lasting: Set<Int> = []
  var visits: Set<Int> = []
  var urgent: Set<Int> = []
  var new: Set<Int> = []
  var busy: Set<Int> = []
  /// Those whose values have not come yet in this run.
  var first: Set<Int> = []
  /// By which adapters a device is received; those that are missing here by all.
  var received: [Int: [Int]] = [:]
  private let adapters: Int

  init(adapters: Int = 1, links: Int, stay: Int = 60) {
    now = start
    self.adapters = adapters
    schedule = LinkSchedule(adapters: adapters, links: links, stay: .seconds(stay))
  }

  static func address(_ device: Int) -> BluetoothAddress { BluetoothAddress(truncating: UInt64(device)) }

  mutating func pass(_ seconds: Int) { now = now + .seconds(seconds) }

  func need(_ device: Int) -> Configuration.ConnectMode? {
    lasting.contains(device) ? .always : visits.contains(device) ? .onDemand : nil
  }

  /// The device needs a link: it gets it at once, and is live, or waits.
  /// - Returns: the adapter; nil: it waits.
  mutating func asks(_ device: Int) -> Int? {
    let address = Self.address(device)
    if !first.contains(device) { schedule.receivedFirstValues(address) }
    let received = received[device] ?? Array(0..<adapters)
    let free = schedule.free(for: address)
    guard let adapter = received.first(where: { free[$0] }) else {
      _ = schedule.wait(
        address, for: need(device), on: received, isUrgent: urgent.contains(device),
        isNew: new.contains(device))
      return nil
    }
    schedule.occupy(address, on: adapter, for: need(device), isNew: new.contains(device))
    schedule.becameLive(address, at: now)
    return adapter
  }

  /// What its first turn is for has come.
  mutating func receivesFirstValues(_ device: Int) {
    first.remove(device)
    schedule.receivedFirstValues(Self.address(device))
  }

  /// Its link has ended, or it is out of range.
  mutating func ends(_ device: Int) { schedule.leave(Self.address(device)) }

  mutating func review() -> [LinkSchedule.Action] { schedule.review(at: now, isBusy: isBusy) }

  private var isBusy: (BluetoothAddress) -> Bool { { [busy] in busy.contains(Int($0.value)) } }

  var turns: [(device: BluetoothAddress, next: Moment?)] { schedule.turns(at: now, isBusy: isBusy) }
  var queue: [Int] { turns.map { Int($0.device.value) } }
}
