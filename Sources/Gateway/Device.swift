import BlueZ
import EventLoop
import GATT
import MQTT

/// One device, from its first being known to the end of the gateway: its session, its writes, its topics.
final class Device: @unchecked Sendable {
  // @unchecked: touched by the gateway's actor alone, on the loop's thread.

  typealias Write = ConfirmedWrite<Asker>

  /// A property of the profile as this device has it.
  struct Channel {
    let property: Property
    let topics: DeviceTopics.Topics
    let encoder: ReadingEncoder
    /// For writable properties.
    var write: Write?
    /// The payloads of the last commands. The broker sends a retained one again at every connection; one that
    /// was taken before is passed over.
    private(set) var recentCommands: [[UInt8]] = []
    /// While there is a link that offers it.
    var characteristic: Characteristic?
    /// The last value was none: told once, until a good one comes.
    var isMalformed = false

    private static let recentLimit = 16

    mutating func remember(command payload: [UInt8]) {
      recentCommands.removeAll { $0 == payload }
      recentCommands.append(payload)
      if recentCommands.count > Self.recentLimit { recentCommands.removeFirst() }
    }
  }

  let topics: DeviceTopics
  var info: DeviceInfo
  var session: PeripheralSession
  var timer: LoopTimer?
  /// The peripheral behind it, once it was seen in this run of bluetoothd.
  var peripheral: PeripheralID?
  /// In the order of the profile's properties.
  var channels: [Channel]
  /// Counts the readings of this run.
  var sequence: UInt64 = 0

  init(info: DeviceInfo, period: Int?, profile: Profile, topics: DeviceTopics, run: RunID) {
    self.info = info
    self.topics = topics
    session = PeripheralSession(now: .now)
    channels = zip(profile.properties, topics.properties).map { property, topics in
      Channel(
        property: property, topics: topics,
        encoder: ReadingEncoder(property: property, gateway: info.gateway, run: run),
        write: property.isWritable ? Write(wanted: property == .microbitPeriod ? period : nil) : nil)
    }
  }

  var id: DeviceID { info.id }
}
