import Configuration
import GATT
import JSON
import Log

/// What is known of a device beyond its readings.
package struct DeviceDescription: Sendable, Equatable {
  package internal(set) var id: DeviceID
  package let address: BluetoothAddress
  /// The profile with the properties in use only, as they are adjusted.
  package internal(set) var profile: Profile
  /// The adjustments of the properties that are set, as JSON.
  package internal(set) var adjust: JSONValue = [:]
  /// What is added to numbers, by property; also to values that the device's program names itself.
  package internal(set) var offsets: [String: Offset] = [:]
  /// The advertised Bluetooth name, unchecked; nil while none was received.
  package internal(set) var bluetoothName: String?
  package internal(set) var configuredName: String?
  package internal(set) var area: String?
  /// Whether the device's entry is the fleet's, and not of config.json.
  package internal(set) var isOfFleet = false
  package internal(set) var isEnabled = true
  /// Signal strength in dBm of the last advertisement that its adapter received; if it is only heard: the mean, followed in
  /// steps of 10 dB.
  package internal(set) var rssi: Int?
  /// Whether bluetoothd has a bond with it.
  package internal(set) var isPaired = false
  package internal(set) var session = SessionState.absent
  /// Why the device is not connected, as far as is known; nil once it is.
  package internal(set) var lastError: String?
  /// Whether a request to pair may mend ``lastError``.
  package internal(set) var wantsPairing = false
  /// Whether the device has a link and sends readings; if it is connected on demand or in turns: whether none is overdue.
  package internal(set) var isOnline = false
  /// Whether the device is connected on demand, without a permanent link.
  package internal(set) var isOnDemand = false
  /// The begin of its last link in this run; if it is only heard, since when it was heard without a pause.
  package internal(set) var lastConnected: Timestamp?
  /// When the device was online last in this run; nil while it is online, and before it was.
  package internal(set) var offlineSince: Timestamp?
  /// How many times the advertisements of a device that is only heard were reported since ``lastConnected``.
  package internal(set) var reports = 0
  /// When a device whose silence does not make it offline was heard last, in this run or an earlier one. Renewed with each event,
  /// otherwise at most every 10 s.
  package internal(set) var lastHeard: Timestamp?
  /// The last events that were told, by any gateway, the newest last; only if it is only heard.
  package internal(set) var told: [HeardEvents.Event] = []
  /// The device's place among those that wait for a link; nil: it does not wait for one.
  package internal(set) var turn: LinkTurn?
  /// The adapter of its last link, or the one that heard it first, as BlueZ names it; nil while it is offline.
  package internal(set) var adapter: String?
  /// The properties that it has offered: if its profile is automatic, on the last link or later on it, else on any link;
  /// nil: it was never connected.
  package internal(set) var offered: Set<String>?
  /// The ``offered`` properties that the last link lacks, or that cannot be used on it.
  package internal(set) var missing: Set<String> = []
  /// The ids of objects of BTHome that it has sent, and that are not known.
  package internal(set) var unknownObjects: Set<UInt8> = []
  /// The values that the device's program names itself, in the order of their names.
  package internal(set) var values: [NamedValue] = []
  /// The desired values as published, by property: that of a waiting command, else the one applied on every link.
  package internal(set) var desired: [String: Value] = [:]
  /// The properties in ``desired`` whose value the configuration sets, and no command or request.
  package internal(set) var configured: Set<String> = []
  /// A user has deleted it where front ends announce it (Home Assistant): it is not announced until it is added again.
  package internal(set) var isDeleted = false
  /// Grows with each change of what gateways hand over, the overrides and ``isDeleted``: of two copies, the one with the
  /// larger number is newer. The time of the change in milliseconds, unless a change before has a later one.
  package internal(set) var revision = 0
  /// Model, firmware and serial number, from the Device Information Service; the firmware also from BTHome.
  package internal(set) var model: String?
  package internal(set) var firmware: String?
  package internal(set) var serial: String?
  /// Whether model, firmware and serial number are being read for the first time.
  package internal(set) var isInformationPending = false

  /// What people call the device.
  package var name: String? { configuredName ?? bluetoothName }

  /// Whether the device may have the property, as far as is known.
  package func mayOffer(_ property: String) -> Bool { offered?.contains(property) ?? true }

  /// Whether nothing differs but what is desired, the signal strength, and what was told.
  package func isSame(butForDesiredAsIn other: DeviceDescription) -> Bool {
    var changed = self
    (changed.desired, changed.configured) = (other.desired, other.configured)
    (changed.revision, changed.rssi, changed.told) = (other.revision, other.rssi, other.told)
    return changed == other
  }

  var hasInformation: Bool { model != nil || firmware != nil || serial != nil }

  /// The properties that are published: if its profile is automatic, those that it may offer.
  package var properties: [Property] {
    profile.isAutomatic ? profile.properties.filter { mayOffer($0.name) } : profile.properties
  }

  /// The names of the properties and values that are published.
  package var propertyNames: Set<String> { Set(properties.map(\.name) + values.map(\.property.name)) }

  /// The property that sends values to its program.
  package var valueSetter: Property? { profile.values?.sent.map { profile.properties[$0] } }

  /// Whether the device's last link offers the lines of values.
  package var hasLines: Bool {
    guard let lines = profile.values.map({ profile.properties[$0.received].name }) else { return false }
    return mayOffer(lines) && !missing.contains(lines)
  }

  /// Learns what the link offers now. A new link has the whole program: what that lacks is gone, if the profile is automatic.
  /// What a link loses may come back: the peripheral, or bluetoothd, may be about to replace its services.
  mutating func learn(offered now: Set<String>, usable: Set<String>, isNewLink: Bool) {
    let all = isNewLink && profile.isAutomatic ? now : (offered ?? []).union(now)
    offered = all
    missing = all.subtracting(usable)
  }

  /// - Parameter texts: the values of the Device Information Service, by characteristic.
  mutating func learn(information texts: [BluetoothUUID: String]) {
    isInformationPending = false
    model = texts[DeviceInformation.modelNumber] ?? model
    firmware = texts[DeviceInformation.firmwareRevision] ?? firmware
    serial = texts[DeviceInformation.serialNumber] ?? serial
  }
}
