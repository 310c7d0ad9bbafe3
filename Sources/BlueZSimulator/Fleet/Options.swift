/// What is simulated, and how fast it goes.
public struct SimulatorOptions: Sendable {
  /// How many micro:bits there are.
  public var devices = 3
  /// How many peripherals there are that are no micro:bits.
  public var strangers = 0
  /// More peripherals that are no micro:bits; they come after the strangers.
  public var others: [PeripheralDescription] = []
  /// What the micro:bits serve, in this order.
  public var services: [MicroBitService] = [.temperature]
  /// What the micro:bits' names begin with.
  public var namePrefix = "BBC micro:bit"
  /// Whole names, by the index of the micro:bit.
  public var names: [Int: String] = [:]
  /// Addresses in place of the default ones, by the index of the micro:bit.
  public var addresses: [Int: String] = [:]
  /// The period with which the micro:bits start, in ms; a reset brings the firmware's own 1000.
  public var period: UInt16 = 1000
  /// What they hold when a shorter period is written to them, in ms. No firmware is known that does so.
  public var leastPeriod: UInt16 = 0
  /// Whether they have the characteristic of the period.
  public var hasPeriod = true
  /// What temperatures, signal strengths and phases are drawn from.
  public var seed: UInt64 = 1
  /// The times that bluetoothd and the radio take.
  public var timing = Timing()
  /// A file in which to note when each notification is sent, as ``NotificationTrace`` lays it out; the
  /// sensors then count the notifications.
  public var trace: String?

  /// Three micro:bits, and times as recorded.
  public init() {}
}

/// How long things take. The defaults are what a real bluetoothd 5.66 was recorded with.
public struct Timing: Sendable {
  /// From Connect to its reply, when nothing else is being connected and no discovery is on.
  public var connect: Duration = .milliseconds(470)
  /// From Disconnect to the end of the link.
  public var disconnect: Duration = .milliseconds(2500)
  /// How long a Connect waits for a peripheral that is not heard.
  public var connectTimeout: Duration = .milliseconds(40_300)
  /// Within this time after the start of a scan every advertiser in range has been heard.
  public var advertising: Duration = .milliseconds(200)
  /// The kernel scans for this long, reporting each advertiser once, and begins again. While discovery is
  /// on, links are made only between two scans, which is why a Connect then takes so long.
  public var scan: Duration = .milliseconds(10_700)
  /// A device that was never connected is forgotten this long after it was last heard.
  public var temporary: Duration = .milliseconds(30_000)
  /// From the loss of the radio to the loss of the link.
  public var supervision: Duration = .milliseconds(420)
  /// How long an ATT request takes; at zero it is answered at once.
  public var attribute: Duration = .zero
}
