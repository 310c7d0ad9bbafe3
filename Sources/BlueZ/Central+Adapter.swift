import DBus
import EventLoop

extension Central {
  func powerOffAndOn() async throws(CentralError) {
    var failure: CentralError?
    do throws(CentralError) {
      try await power(false)
      _ = await wait(limits.treeUpdate) { !self.state.isOn }
    } catch {
      failure = error
    }
    // The adapter may have powered off although the call failed, and nothing else would power it on again.
    do throws(CentralError) {
      do throws(CentralError) { try await power(true) } catch { try await power(true) }
    } catch {
      loop.task { await self.powerOnLater() }
      throw error
    }
    if let failure {
      // What was not answered in time may still take effect, and power the adapter off.
      if case .timedOut = failure { loop.task { await self.powerOnLater() } }
      throw failure
    }
    guard await wait(limits.local, until: { self.state.isOn }) else {
      throw .timedOut("the adapter did not come back in time")
    }
  }

  /// Powers the adapter on after a reset has left it off, again and again until it is on, or is off for another reason.
  private func powerOnLater() async {
    _ = await wait(limits.lateChange) { !self.state.isOn || self.queue.isClosed }
    var backOff = limits.powerBackOff
    while state == .adapterOff, !queue.isClosed {
      do { try await loop.sleep(for: backOff.next()) } catch { return }
      guard state == .adapterOff, !queue.isClosed else { return }
      log.notice("powering the adapter on", ["adapter": adapterName])
      try? await power(true)
      _ = await wait(limits.treeUpdate) { self.state.isOn }
    }
  }

  private func power(_ isOn: Bool) async throws(CentralError) {
    let set = DBusCall.set("Powered", to: .boolean(isOn), on: BlueZName.adapter, of: adapterPath)
    var backOff = limits.busyBackOff
    for _ in 0..<limits.busyRetries {
      do throws(CentralError) {
        try await call(set)
        return
      } catch .busy {
        // An earlier change of the power, or a disconnect, is still in progress.
        try? await loop.sleep(for: backOff.next())
      }
    }
    try await call(set)
  }
}
