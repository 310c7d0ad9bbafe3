/// A peripheral and its radio: what is there whether bluetoothd knows of it or not.
struct Peripheral: Sendable {
  let index: Int
  /// Empty: it advertises none.
  let name: String
  let address: String
  /// The services that it advertises.
  var advertised: [String] = []
  let database: GATTDatabase
  /// nil for what is no micro:bit.
  var microBit: MicroBit?
  /// nil unless it serves its accelerometer.
  var accelerometer: Accelerometer?
  /// What characteristics hold in the place of their first value, by their handles.
  var values: [UInt16: [UInt8]] = [:]
  /// The writes that characteristics have taken, by their handles.
  var writes: [UInt16: Writes] = [:]
  /// Since when it is out of the adapter's reach; nil within it.
  var goneSince: ContinuousClock.Instant?
  /// Advertises while it has no link.
  var advertises = true
  /// Keeps the link but sends no notifications.
  var silent = false
  /// What happens to the next writes of its client configuration.
  var subscriptionFault: SubscriptionFault?
  /// Answers to its services, but for device information, only on an encrypted link.
  var demandsPairing = false
  /// Has a link to the adapter.
  var linked = false
  /// Mean signal strength in dBm.
  let strength: Int
  /// Notifications sent over the air so far.
  var sent = 0

  /// What bluetoothd calls it: the address in the place of a missing name.
  var alias: String { name.isEmpty ? String(address.map { $0 == ":" ? "-" : $0 }) : name }

  var inRange: Bool { goneSince == nil }

  /// Can be heard, and would take a link.
  var isAudible: Bool { inRange && advertises && !linked }
}

/// The writes that a characteristic has taken.
struct Writes: Sendable {
  /// No more than these are kept: the oldest go.
  private static let most = 1000
  /// All of them.
  private(set) var count = 0
  private(set) var last: [[UInt8]] = []

  mutating func append(_ bytes: [UInt8]) {
    count += 1
    if last.count == Self.most { last.removeFirst() }
    last.append(bytes)
  }
}

/// How writes of the client configuration fail.
struct SubscriptionFault: Sendable {
  enum Kind: Sendable {
    /// The link is lost.
    case drop
    /// The peripheral answers with this ATT error.
    case error(UInt8)
    /// The peripheral answers nothing, and the link is lost after a while.
    case silence(Duration)
  }

  let kind: Kind
  /// How many of them succeed first.
  var skip = 0
  /// How many more of them fail.
  var count: Int
}

extension SimulatorOptions {
  /// The peripherals that these options ask for: micro:bits first.
  func peripherals(at now: ContinuousClock.Instant, random: inout SplitMix) -> [Peripheral] {
    var peripherals: [Peripheral] = []
    for index in 0..<devices {
      peripherals.append(
        Peripheral(
          index: index,
          name: names[index] ?? "\(namePrefix) [\(Identity.friendlyName(index))]",
          address: addresses[index] ?? Identity.address(ofMicroBit: index),
          database: .microBit(serial: 1_234_567_890 + index, services, hasPeriod: hasPeriod),
          microBit: MicroBit(
            index: index, period: period, leastPeriod: leastPeriod, counts: trace != nil, at: now,
            random: &random),
          // Their samples are spread over its period.
          accelerometer: services.contains(.accelerometer)
            ? Accelerometer(counts: trace != nil, at: now + .milliseconds(index % 20)) : nil,
          strength: Int.random(in: -70 ... -48, using: &random)))
    }
    for index in 0..<strangers {
      peripherals.append(
        Peripheral(
          index: devices + index, name: Identity.strangerName(index),
          address: Identity.address(ofStranger: index), database: .stranger,
          strength: Int.random(in: -90 ... -60, using: &random)))
    }
    for (index, description) in others.enumerated() {
      peripherals.append(
        Peripheral(
          index: devices + strangers + index, name: description.name,
          address: description.address?.description ?? Identity.address(ofOther: index),
          advertised: description.advertises.map(\.description), database: description.database,
          strength: Int.random(in: -70 ... -48, using: &random)))
    }
    return peripherals
  }
}
