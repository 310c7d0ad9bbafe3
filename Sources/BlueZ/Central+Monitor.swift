import DBus
import EventLoop

/// The monitor of advertisements, with which a device that is only heard is heard more often.
extension Central {
  /// Whether the monitor is active, so that each advertisement is reported.
  public var isMonitoring: Bool { monitor.isActive }

  /// Registers or unregisters the monitor, one call at a time.
  func reconcileMonitor() {
    if let step = monitor.next(
      isWanted: scanner.wantsEach, isOffered: tree.offersMonitors, isOn: state.isOn)
    {
      loop.task { await self.perform(step) }
    }
  }

  private func perform(_ step: AdvertisementMonitor.Step) async {
    do throws(CentralError) {
      try await call(
        DBusCall(
          step.rawValue, on: BlueZName.monitorManager, of: adapterPath,
          [.objectPath(AdvertisementMonitor.root)]))
    } catch {
      if step == .register, monitor.isAsked { reportUnmonitored("\(error)") }
    }
    monitor.ended()
    reconcileMonitor()
  }

  /// Answers a call of bluetoothd to the monitor, or to the object that lists it.
  func answerAsMonitor(_ call: DBusCall) {
    guard let answer = monitor.answer(call.member) else { return reply(to: call, .failure(.noSuchMethod)) }
    reply(to: call, .success(answer))
    if call.member == "Release", monitor.isAsked { reportUnmonitored("released") }
  }

  private func reportUnmonitored(_ reason: String) {
    log.info(
      "bluetoothd does not monitor advertisements: devices are heard by discovery",
      ["adapter": adapterName, "reason": reason])
  }
}
