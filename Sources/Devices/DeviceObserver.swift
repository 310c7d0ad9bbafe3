import Configuration
import EventLoop
import GATT
import JSON
import Log

/// Follows one device. Called synchronously when the engine's own state is complete. Before it returns, it may call back what is
/// about the owner and the id: ``DeviceManager/storeID(of:)``, ``DeviceManager/setOwner(_:of:_:isTakenOver:hasNewLink:)`` and
/// ``DeviceManager/yieldID(_:)``. The calls of observers that follow from that come in between; the rest of the first ones then
/// get the description as it is by then.
@LoopActor package protocol DeviceObserver: AnyObject, Sendable {
  /// A reading, or a value read back. On the path of every reading.
  func reported(_ reading: Reading)
  /// An event that was heard; the gateway whose claim came first publishes it, whoever owns the device.
  /// - Parameter isElsewhere: whether that is another gateway.
  func told(_ reading: Reading, isElsewhere: Bool)
  /// A new row of the device's data log.
  /// - Parameter measured: when it was written; nil: that is not certain.
  func logged(_ row: LogRow, measured: Timestamp?)
  func changed(_ change: DeviceChange, _ device: DeviceDescription)
  /// What becomes of a command, from any front end.
  /// - Parameters:
  ///   - property: its name, also that of a value that the device's program names itself.
  ///   - outcome: nil: it begins.
  func commandChanged(_ value: Value, for property: String, _ outcome: Outcome?)
  /// A command of an earlier run has ended, whose sender is still to be answered.
  /// - Parameter sender: see ``Command/sender``.
  func answer(_ result: CommandResult, to sender: JSONValue)
  /// Whether other gateways may hear the device, and tell its events: these are claimed first.
  var hasPeers: Bool { get }
  /// Sends the claim to all gateways, this one included: ``DeviceManager/claimed(_:of:byThis:)`` follows.
  func claim(_ event: HeardEvents.Event)
  /// The last call.
  func detach(_ reason: DetachReason)
}

extension DeviceObserver {
  /// The default for a front end that shows no data logs.
  package func logged(_ row: LogRow, measured: Timestamp?) {}
  /// The default for a front end of this gateway alone.
  package func told(_ reading: Reading, isElsewhere: Bool) { reported(reading) }
  /// The default for a front end that does not show commands.
  package func commandChanged(_ value: Value, for property: String, _ outcome: Outcome?) {}
  package var hasPeers: Bool { false }
  package func claim(_ event: HeardEvents.Event) {}
  /// The default for a front end that sends no commands.
  package func answer(_ result: CommandResult, to sender: JSONValue) {}
}

/// What has changed about a device.
package enum DeviceChange: Sendable, Equatable {
  /// The device is online, or no longer.
  case availability
  /// Only the state of the device's session.
  case session
  /// Only what gateways hand over to each other: desired values, or the events that were told.
  case handover
  /// Anything else of the device's description.
  case description
  /// The device had this id before.
  case renamed(from: DeviceID, RenameReason)
}

package enum RenameReason: Sendable, Equatable {
  /// A user has renamed it: its topics move along.
  case requested
  /// Another gateway uses the id for another device, and keeps its topics.
  case conflict
}

/// Why an observer ends; it decides whether retained topics are cleared.
package enum DetachReason: Sendable, Equatable {
  /// A user, or the gateway itself, has removed the device.
  case removed
  /// The device is pinned to another gateway now.
  case pinnedElsewhere
  /// The device was never connected, and is out of range.
  case neverConnected
  /// The device is attached again at once, with other properties.
  case replaced
}
