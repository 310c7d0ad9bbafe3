import Peripherals

/// The simulated peripherals and their timing.
public struct SimulatorOptions: Sendable {
  /// The number of adapters.
  public var adapters = 1
  /// The number of micro:bits.
  public var devices = 3
  /// The number of peripherals that are not micro:bits.
  public var decoys = 0
  /// Further peripherals, after the decoys.
  package var described: [PeripheralDescription] = []
  /// The services of the micro:bits, in this order.
  public var services: [MicroBitService] = [.temperature]
  /// Full names, by the index of the micro:bit.
  public var names: [Int: String] = [:]
  /// Addresses instead of the default ones, by the index of the micro:bit.
  public var addresses: [Int: String] = [:]
  /// The initial period of the micro:bits in ms; the firmware's own after a reset is 1000.
  public var period: UInt16 = 1000
  /// The shortest period in ms that the micro:bits accept; shorter ones are replaced by it. No firmware is known to do
  /// so.
  public var minimumPeriod: UInt16 = 0
  /// What sets values of each micro:bit.
  package var generators: [Generator] = []
  /// The signal strengths in dBm by which the adapters receive each micro:bit, by its index; nil: out of range.
  public var strengths: [Int: [Int?]] = [:]
  /// How the micro:bits require pairing; nil: they are open.
  public var pairing: PairingMethod?
  /// The seed of temperatures, signal strengths and phases.
  public var seed: UInt64 = 1
  /// The timing of bluetoothd and the radio.
  public var timing = Timing()
  /// A file for the time of each notification, in the format of ``NotificationTrace``; the sensors then count the
  /// notifications.
  public var trace: String?

  /// A folder for the port of a receiver on USB; nil: there is no receiver.
  public var receiver: String?
  /// What it receives.
  package var scenario: RadioScenario = .classByRadio

  /// Three micro:bits with the recorded timing.
  public init() {}
}

/// How a micro:bit pairs.
public enum PairingMethod: String, Sendable, CaseIterable {
  /// The micro:bit pairs without asking.
  case justWorks = "just_works"
  /// The micro:bit displays a passkey: 100000 plus its index.
  case passkey
}

/// Delays. The defaults were recorded with bluetoothd 5.66.
public struct Timing: Sendable {
  /// The time from Connect to its reply, when nothing else is being connected and discovery is off.
  public var connect: Duration = .milliseconds(470)
  /// The time from Disconnect to the end of the link.
  public var disconnect: Duration = .milliseconds(2500)
  /// How long a Connect waits for a peripheral that does not advertise.
  public var connectTimeout: Duration = .milliseconds(40_300)
  /// Within this time after the start of a scan every advertiser in range is found.
  public var advertising: Duration = .milliseconds(200)
  /// The duration of a scan by the kernel, which reports each advertiser once. While discovery is on, links are only
  /// made between two scans, which is why a Connect then takes so long.
  public var scan: Duration = .milliseconds(10_700)
  /// A device that was never connected is removed this long after its last advertisement.
  public var temporary: Duration = .milliseconds(30_000)
  /// The time from the loss of the radio to the loss of the link.
  public var supervision: Duration = .milliseconds(420)
  /// The duration of an ATT request; at zero it is answered at once.
  public var attribute: Duration = .zero
  /// The time between two notifications of a micro:bit's data log: the connection interval.
  public var logReply: Duration = .milliseconds(20)
}
