import EventLoop
import Peripherals

/// A peripheral, independent of bluetoothd.
struct Peripheral: Sendable {
  /// The advertised name; empty: none is advertised.
  var name: String
  /// A private one, if ``Security/identity`` is another one.
  var address: String
  /// The advertised services.
  var advertised: [String] = []
  /// Manufacturer data by company identifier.
  var manufacturerData: [UInt16: [UInt8]] = [:]
  /// Service data by service.
  var serviceData: [String: [UInt8]] = [:]
  var values: PeripheralValues
  /// When the next sample or generated value is scheduled.
  var due: Moment?
  /// Handles of the services that it does not offer at present.
  var hidden: Set<UInt16> = []
  /// The writes to characteristics, by handle.
  var writes: [UInt16: Writes] = [:]
  /// How the next writes of the client configuration fail.
  var subscriptionFault: SubscriptionFault?
  var security = Security()
  var radio: Radio

  /// Everything that it may serve.
  var database: GATTDatabase { values.database }

  /// BlueZ's Alias: the address if there is no name.
  var alias: String { name.isEmpty ? String(address.map { $0 == ":" ? "-" : $0 }) : name }

  /// The services that the peripheral has at present.
  var services: [GATTDatabase.Service] { database.services.filter { !hidden.contains($0.handle) } }

  /// `Device1.UUIDs` once its services are resolved.
  var uuids: [String] {
    let gone = Set(database.services.map(\.uuid)).subtracting(services.map(\.uuid)).map(\.description)
    return database.uuids.filter { !gone.contains($0) }
  }
}

/// How a request to a peripheral fails.
enum LinkFault: Sendable {
  /// The link is dropped.
  case drop
  /// The peripheral answers with this ATT error.
  case error(UInt8)
  /// The peripheral does not answer, and the link is dropped after this time.
  case silence(Duration)
}

/// How a peripheral pairs.
struct Security: Sendable {
  /// Requires an encrypted link, except for the device information.
  var isRequired = false
  /// Whether the peripheral pairs with any central, or refuses.
  var pairs = true
  /// The passkey that the peripheral displays; nil: JustWorks.
  var passkey: Int?
  /// Whether the peripheral has its part of the bond.
  var hasBond = false
  /// The identity address, which it tells when it pairs; nil: its address is not a private one.
  var identity: String?
  /// How pairing fails next time; not with an ATT error, and after bluetoothd's own time.
  var fault: LinkFault?
}

/// The writes to a characteristic.
struct Writes: Sendable {
  /// The number of writes to keep.
  private static let maximum = 1000
  /// The number of all writes.
  private(set) var count = 0
  private(set) var last: [[UInt8]] = []

  mutating func append(_ bytes: [UInt8]) {
    count += 1
    if last.count == Self.maximum { last.removeFirst() }
    last.append(bytes)
  }
}

/// How writes of the client configuration fail.
struct SubscriptionFault: Sendable {
  let fault: LinkFault
  /// The number of writes that fail.
  var count: Int
}

extension SimulatorOptions {
  /// The simulated peripherals: first the micro:bits.
  func peripherals(at now: Moment, random: inout SplitMix) -> [Peripheral] {
    var peripherals: [Peripheral] = []
    func everywhere(_ strength: Int) -> Radio {
      Radio(strengths: Array(repeating: strength, count: adapters))
    }
    for index in 0..<devices {
      let security = Security(
        isRequired: pairing != nil, passkey: pairing == .passkey ? 100_000 + index : nil)
      peripherals.append(
        Peripheral(
          name: names[index] ?? "BBC micro:bit [\(Identity.friendlyName(index))]",
          address: addresses[index] ?? Identity.address(ofMicroBit: index),
          values: PeripheralValues(
            .microBit(serial: 1_234_567_890 + index, services),
            microBit: MicroBit(
              index: index, period: period, minimumPeriod: minimumPeriod, counts: trace != nil, at: now,
              random: &random),
            // The samples of all micro:bits are spread over the period.
            accelerometer: services.contains(.accelerometer)
              ? Accelerometer(counts: trace != nil, at: now + .milliseconds(index % 20)) : nil,
            generators: generators, at: now),
          security: security,
          radio: strengths[index].map(Radio.init) ?? everywhere(Int.random(in: -70 ... -48, using: &random))))
    }
    for index in peripherals.indices { peripherals[index].values.dataLog.interval = timing.logReply }
    for index in 0..<decoys {
      peripherals.append(
        Peripheral(
          name: Identity.decoyName(index), address: Identity.address(ofDecoy: index),
          values: PeripheralValues(.decoy, at: now),
          radio: everywhere(Int.random(in: -90 ... -60, using: &random))))
    }
    for (index, description) in described.enumerated() {
      peripherals.append(
        Peripheral(
          name: description.name,
          address: description.address?.description ?? Identity.address(ofDescribed: index),
          advertised: description.advertises.map(\.description),
          manufacturerData: description.manufacturerData,
          serviceData: Dictionary(
            uniqueKeysWithValues: description.serviceData.map { ($0.key.description, $0.value) }),
          values: PeripheralValues(description.database, generators: description.generators, at: now),
          radio: everywhere(Int.random(in: -70 ... -48, using: &random))))
    }
    return peripherals
  }
}
