import Configuration
import EventLoop

extension DeviceManager {
  private static let mostLogs = 4
  /// How long a log is waited for while nothing of it arrives.
  private static let logPatience = Duration.seconds(90)

  /// Reads the whole data log of a micro:bit, over as many links as that takes. What was read before an error is kept for
  /// some minutes, and the next request goes on from there.
  package func log(of id: DeviceID) async throws(RequestError) -> [UInt8] {
    let device = try requireDevice(id)
    try device.description.checkEnabled()
    _ = try device.session.requireLinkSession()
    let log = device.dataLog
    guard !log.isCopying else {
      throw RequestError("the log of \(id) is being read: \(log.copy.count) of \(log.length) bytes so far")
    }
    guard registry.all.count(where: { $0.dataLog.isCopying }) < Self.mostLogs else {
      throw RequestError("\(Self.mostLogs) logs are being read: try again later")
    }
    log.beginCopying()
    defer { log.endCopying() }
    var deadline = Moment.now + Self.logPatience
    while true {
      let before = log.copy.count
      let failure: LogFailure
      if let obstacle = await link(to: device) {
        failure = .unusable(obstacle)
      } else {
        defer { device.taskEnded() }
        // A link that has ended in between says nothing about the log.
        guard device.session.linkSession?.services.resolution?.log != nil || !device.isLive else {
          throw RequestError(
            .failed,
            "\(id) has no log that can be read: that takes a V2 whose program has the extensions datalogger and bluetooth"
          )
        }
        let reason = device.isLive ? await log.completeCopy(on: device.session.central) : .linkLost
        guard let reason else { return log.copy }
        guard reason == .linkLost else { throw RequestError(.failed, "\(id): \(reason)") }
        failure = reason
      }
      if log.copy.count > before { deadline = .now + Self.logPatience }
      guard .now < deadline, registry.byAddress[device.address] === device, device.obstacle == nil,
        !device.description.wantsPairing
      else {
        let kept =
          log.copy.isEmpty
          ? "" : ": \(log.copy.count) of \(log.length) bytes were read, ask again for the rest"
        throw RequestError("\(id): \(failure)\(kept)")
      }
      try? await loop.sleep(for: .milliseconds(500))
      // The user waits; links that bring nothing are made again less and less often.
      if log.copy.count > before, device.state == .waiting { device.session.linkSession?.reconnect() }
    }
  }
}

extension Device {
  /// There is a link, or another setting.
  func collectLog() {
    if settings.log, isLive { dataLog.collect() }
  }
}
