import BlueZ
import EventLoop
import GATT
import Log

/// What the devices of an engine have in common.
@LoopActor final class DeviceContext {
  /// The gateway's adapters in the order of the configuration; at least one.
  var centrals: [Central] = []
  let scheduler: LinkScheduler
  /// How long a device waits for an adapter that has gone and has a bond with it.
  let bondLimit: Duration
  /// How long a peripheral may take to add services after it was connected to.
  let servicesLimit: Duration
  let store: DeviceStore
  let log = Logger(component: "gateway")
  var counters = DeviceCounters()
  /// Logs malformed values of anonymous devices, by profile and property.
  var malformedLog: [String: Hourly] = [:]
  let transmitter = RadioTransmitter()
  /// The time until which devices wait for adapters that are not on: bluetoothd brings them up one by one, and USB may be slow.
  var startDeadline: Moment?
  /// No more commands: what waits is kept for the next start.
  var isStopping = false
  /// Whether the broker has sent a claim of this gateway for an event back, on this connection.
  var claimsReturn = false
  /// Called after the state of a device's session has changed.
  var sessionChanged: () -> Void = {}
  /// Whether another device that is heard by radio has the same five letters.
  var hasNamesake: (BluetoothAddress) -> Bool = { _ in false }
  /// Called after button A of a device was pressed; nil: nobody waits for that.
  var pressed: ((BluetoothAddress) -> Void)?

  init(scheduler: LinkScheduler, bondLimit: Duration, servicesLimit: Duration, store: DeviceStore) {
    self.scheduler = scheduler
    self.bondLimit = bondLimit
    self.servicesLimit = servicesLimit
    self.store = store
  }

  func index(ofAdapter name: String) -> Int? { centrals.firstIndex { $0.adapterName == name } }
  /// Whether any adapter can find devices.
  var canScan: Bool { centrals.contains { $0.state.isOn && $0.recovery == nil } }
}

/// What happened how often in this run.
package struct DeviceCounters: Sendable {
  package internal(set) var readings: UInt64 = 0
  /// Values that could not be decoded.
  package internal(set) var malformed: UInt64 = 0
  /// Peripherals beyond ``DeviceManager/capacity``.
  package internal(set) var overLimit: UInt64 = 0

  package init() {}
}
