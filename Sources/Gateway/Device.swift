import BlueZ
import Configuration
import EventLoop
import GATT
import MQTT

/// One device, from its first being known to the end of the gateway: its session, its writes, its topics.
final class Device: @unchecked Sendable {
  // @unchecked: touched by the gateway's actor alone, on the loop's thread.

  typealias Write = ConfirmedWrite<Asker>

  /// A property of the profile as this device has it.
  final class Channel: @unchecked Sendable {
    // @unchecked: as the device's own.

    let property: Property
    fileprivate(set) var topics: DeviceTopics.Topics
    let encoder: ReadingEncoder
    /// For writable properties.
    var write: Write?
    /// Ends the wait of a command that has a time to live.
    var expiry: Expiry?
    /// The last one that was published in this run.
    var value: Int?
    /// While there is a link that offers it.
    var characteristic: Characteristic?
    /// The last value was none: told once, until a good one comes.
    var isMalformed = false
    /// It is read, as bluetoothd does not notify it: told once, until it does.
    var isPolled = false

    init(property: Property, topics: DeviceTopics.Topics, encoder: ReadingEncoder, write: Write?) {
      self.property = property
      self.topics = topics
      self.encoder = encoder
      self.write = write
    }
  }

  struct Expiry {
    let deadline: Moment
    let timer: LoopTimer
  }

  private(set) var topics: DeviceTopics
  var info: DeviceInfo
  /// What was published of it last.
  var toldInfo: [UInt8] = []
  /// What is wanted of it: by the configuration, and by what requests changed of that.
  var settings: EffectiveDevice
  var holder: Holder
  /// Another gateway's device has its id, which nobody but the user can mend.
  var hasNamesake = false
  /// The echo that comes after all that the broker retains of the device; nil: it has come.
  var awaitedEcho: UInt64?
  var session: PeripheralSession
  /// The session's state that others were told of last.
  var performedState = PeripheralSession.State.absent
  /// Tells the session from those before it: what was begun for one of those is not for this one.
  private(set) var sessionNumber = 0
  var timer: LoopTimer?
  /// The peripheral behind it, once it was seen in this run of bluetoothd.
  var peripheral: PeripheralID?
  /// Of what Home Assistant was told last.
  var announcedHash: Int?
  var announcedAt: Moment?
  /// What tells of the peripheral's make, while there is a link that offers it.
  var information: [Characteristic] = []
  /// It is being read for the first time: what is announced waits for it.
  var isInformationAwaited = false
  /// In the order of the profile's properties.
  let channels: [Channel]
  /// Counts the readings of this run.
  var sequence: UInt64 = 0

  /// - Parameter encoders: for each of the profile's properties.
  init(
    info: DeviceInfo, settings: EffectiveDevice, profile: Profile, topics: DeviceTopics,
    encoders: [ReadingEncoder]
  ) {
    self.info = info
    self.settings = settings
    self.topics = topics
    holder = Holder(info.gateway)
    session = PeripheralSession(now: .now)
    channels = profile.properties.enumerated().map { index, property in
      Channel(
        property: property, topics: topics.properties[index], encoder: encoders[index],
        write: property.isWritable ? Write(wanted: info.wanted[property.name]) : nil)
    }
  }

  var id: DeviceID { info.id }
  var address: BluetoothAddress { info.identifier }
  var isLive: Bool { session.state == .live }
  /// Since when it is live, as its `info` says.
  var liveSince: String? { isLive ? info.connectedSince?.description : nil }

  /// How often a property is read that bluetoothd does not notify: once a period, and once a second at most.
  var pollInterval: Duration {
    let period = channels.first { $0.property == .microbitPeriod }?.value
    return .milliseconds(max(1000, period ?? 0))
  }

  func beginSession() {
    session = PeripheralSession(now: .now)
    sessionNumber += 1
  }

  /// It goes by another id, and by other topics, from now on.
  func rename(to id: DeviceID, _ topics: DeviceTopics) {
    info.id = id
    self.topics = topics
    for (channel, topics) in zip(channels, topics.properties) { channel.topics = topics }
  }
}
