import EventLoop

/// Decides the state that a central reports, from what is known of bluetoothd and of the adapter.
@LoopActor struct CentralStatus {
  enum Bluetoothd {
    /// bluetoothd was not asked: there is no bus, or another gateway holds the adapter's lock → absent, listing.
    case unknown
    /// bluetoothd is not running → listing, unknown.
    case absent
    /// bluetoothd's objects are being listed → listed, silent, denied, absent, unknown.
    case listing
    /// bluetoothd's objects are known → listing, absent, unknown.
    case listed
    /// bluetoothd has not listed its objects; listing is retried → listed, denied, absent, unknown.
    case silent
    /// The bus does not let this user call bluetoothd; listing is retried → listed, silent, absent, unknown.
    case denied
  }

  private(set) var state = CentralState.noBus("not connected yet")
  private var reported: CentralState?
  private var bluetoothd = Bluetoothd.unknown
  var isListed: Bool { bluetoothd == .listed }
  /// Runs after bluetoothd has started: its adapters appear and are powered one by one.
  private var startup: LoopTimer?
  /// The state before the reset that is in progress; nil: there is none. A reset that has begun must be completed.
  var beforeReset: CentralState?
  var isResetting: Bool { beforeReset != nil }
  /// The state as people see it: an adapter that is being reset is off for a moment only.
  var shown: CentralState { state == .adapterOff ? beforeReset ?? state : state }

  /// - Parameter startup: when bluetoothd has started: a running timer, at whose end ``startupEnded()`` is called.
  mutating func set(_ bluetoothd: Bluetoothd, startup: LoopTimer? = nil) {
    self.bluetoothd = bluetoothd
    // Adapters may still appear when the objects are listed.
    if bluetoothd == .listed { return }
    startupEnded()
    self.startup = startup
  }

  mutating func startupEnded() {
    startup?.cancel()
    startup = nil
  }

  /// The state that follows from what is known; nil if that does not suffice.
  func next(_ adapter: ObjectTree.Adapter?, name: String) -> CentralState? {
    switch bluetoothd {
    case .unknown, .listing: return nil
    case .absent: return .noBluetoothd
    case .silent: return .noAnswer
    case .denied: return .unauthorized
    case .listed: break
    }
    if let adapter, !adapter.isCentral { return .adapterUnsupported }
    if let adapter, adapter.isPowered { return .on(adapter: name, address: adapter.address) }
    if startup != nil { return nil }
    guard let adapter else { return .adapterAbsent }
    return adapter.powerState == "off-blocked" || RFKill.block(ofAdapter: name) != nil
      ? .adapterBlocked : .adapterOff
  }

  /// - Returns: whether the state has to be reported.
  mutating func set(_ new: CentralState) -> Bool {
    state = new
    if new.isOn { startupEnded() }
    // A different reason for the missing bus is not reported again.
    if case (.noBus, .noBus) = (reported, new) { return false }
    defer { reported = new }
    return reported != new
  }
}
