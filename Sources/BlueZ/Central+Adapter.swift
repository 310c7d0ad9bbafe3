import DBus
import EventLoop

extension Central {
  /// Powers the adapter off and on again: every link ends, and what hangs in the controller with it.
  public func resetAdapter() async throws(CentralError) {
    guard state.isOn else { throw .unavailable }
    isResetting = true
    defer {
      isResetting = false
      checkConditions()
    }
    try await power(false)
    _ = await wait(limits.settle) { !$0.state.isOn }
    // Once more if need be: nobody else would switch it on again.
    do throws(CentralError) { try await power(true) } catch { try await power(true) }
    guard await wait(limits.local, until: { $0.state.isOn }) else {
      throw .timedOut("the adapter did not come back in time")
    }
  }

  private func power(_ isOn: Bool) async throws(CentralError) {
    for pause in limits.inProgress {
      do throws(CentralError) {
        return try await setPower(isOn)
      } catch .busy {
        // The change before it, or the end of a link, may still be under way.
        try? await loop.sleep(for: pause)
      }
    }
    try await setPower(isOn)
  }

  private func setPower(_ isOn: Bool) async throws(CentralError) {
    _ = try await call(
      "Set", on: DBusName.properties, of: adapterPath,
      [.string(BlueZName.adapter), .string("Powered"), .variant(.boolean(isOn))], timeout: limits.local)
  }
}
