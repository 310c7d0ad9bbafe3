import DBus
import EventLoop

extension Central {
  /// Powers the adapter off and on again: every link ends, and what hangs in the controller with it.
  public func resetAdapter() async throws(CentralError) {
    guard state.isOn, !isStopping else { throw .unavailable }
    isResetting = true
    defer {
      isResetting = false
      checkConditions()
    }
    var failure: CentralError?
    do throws(CentralError) {
      try await power(false)
      _ = await wait(limits.settle) { !$0.state.isOn }
    } catch {
      failure = error
    }
    // Off may come about although it was not answered, and nobody else would switch it on again.
    do throws(CentralError) { try await power(true) } catch { try await power(true) }
    if let failure { throw failure }
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
