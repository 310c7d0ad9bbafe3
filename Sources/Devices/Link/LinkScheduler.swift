import Configuration
import EventLoop
import GATT
import Log

/// The links of the adapters, which the devices share. Runs ``LinkSchedule``.
@LoopActor final class LinkScheduler {
  private var schedule: LinkSchedule
  /// The devices that have a link or wait for one.
  private var devices: [BluetoothAddress: Device] = [:]
  private var timer = DeadlineTimer()
  private var isReviewDue = false

  init(_ bluetooth: Configuration.Bluetooth) {
    schedule = LinkSchedule(
      adapters: bluetooth.adapters.count, links: bluetooth.links, stay: .seconds(bluetooth.stay))
  }

  // MARK: Inputs

  func occupy(_ device: Device, on adapter: Int) {
    devices[device.address] = device
    schedule.occupy(device.address, on: adapter, for: device.settings.connect, isNew: device.hasNoStoredID)
    device.setTurn(nil)
    reviewLater()
  }

  func wait(_ device: Device, on adapters: [Int], isUrgent: Bool) {
    devices[device.address] = device
    let isNews = schedule.wait(
      device.address, for: device.settings.connect, on: adapters, isUrgent: isUrgent,
      isNew: device.hasNoStoredID)
    if isNews { reviewLater() }
  }

  func becameLive(_ device: Device) {
    schedule.becameLive(device.address, at: .now)
    passOverWithoutButton(device)
    reviewLater()
  }

  func receivedFirstValues(_ device: Device) {
    schedule.receivedFirstValues(device.address)
    reviewLater()
  }

  func beginRound() {
    schedule.beginRound(at: .now)
    reviewLater()
  }

  /// The device, which was to give up its link, has something to do.
  func keepsLink(_ device: Device) {
    schedule.keepsLink(device.address)
    reviewLater()
  }

  /// The last task of the device has ended: it may give up its link.
  func tasksEnded() { reviewLater() }

  func leave(_ device: Device) {
    guard devices.removeValue(forKey: device.address) != nil else { return }
    schedule.leave(device.address)
    device.setTurn(nil)
    reviewLater()
  }

  /// The device's session has ended.
  func forget(_ device: Device) {
    leave(device)
    schedule.forget(device.address)
  }

  // MARK: Numbers

  /// Micro:bits are numbered by a press of their button A from now on, or no longer.
  func setNumbering(_ isOn: Bool) {
    schedule.setNumbering(isOn)
    for device in devices.values where device.isLive {
      passOverWithoutButton(device)
      device.updateLEDs()
    }
    reviewLater()
  }

  func wasNumbered(_ device: Device) {
    guard awaitsPress(device) else { return }
    schedule.wasNumbered(device.address, at: .now)
    reviewLater()
  }

  /// Whether the device is to be numbered by a press of its button.
  func awaitsPress(_ device: Device) -> Bool { schedule.awaitsNumber(device.address) }

  /// A device whose button A is not in use keeps its link no longer than one that has its number.
  private func passOverWithoutButton(_ device: Device) {
    let isPressable = device.channels.contains {
      $0.property.name == Property.microbitButtonA.name && $0.characteristic != nil
    }
    if !isPressable { schedule.wasNumbered(device.address, at: .now) }
  }

  // MARK: Queries

  func isWaiting(_ device: Device) -> Bool { schedule.isWaiting(device.address) }
  func hasLink(_ device: Device) -> Bool { schedule.hasLink(device.address) }
  func used(on adapter: Int) -> Int { schedule.used(on: adapter) }
  func free(for device: Device) -> [Bool] { schedule.free(for: device.address) }
  func expectedWait(on adapter: Int) -> Duration { schedule.expectedWait(on: adapter) }

  // MARK: The machine

  /// Reviews the turns once for all changes of a loop iteration.
  private func reviewLater() {
    guard schedule.hasWaiting, !isReviewDue else { return }
    isReviewDue = true
    timer.set(.now) { [weak self] in self?.review() }
  }

  private func review() {
    isReviewDue = false
    let isBusy: (BluetoothAddress) -> Bool = { [devices] in devices[$0]?.isBusy == true }
    let actions = schedule.review(at: .now, isBusy: isBusy)
    timer.set(schedule.deadline) { [weak self] in self?.review() }
    for action in actions {
      switch action {
      case .giveUp(let device): devices[device]?.session.linkSession?.endTurn()
      case .connect(let device): devices[device]?.session.linkSession?.connect()
      }
    }
    let (now, time) = (Moment.now, Timestamp.now)
    for (index, turn) in schedule.turns(at: now, isBusy: isBusy).enumerated() {
      let next = turn.next.map { time + now.duration(to: $0) }
      devices[turn.device]?.setTurn(LinkTurn(position: index + 1, next: next))
    }
  }
}
