import Configuration
import EventLoop
import GATT
import Log

/// What is known of a device beyond its readings.
package struct DeviceDescription: Sendable, Equatable {
  package internal(set) var id: DeviceID
  /// What holds for the device, by the configuration and by requests.
  package internal(set) var settings: DeviceSettings
  /// What is kept of the device over a restart.
  package internal(set) var record: DeviceRecord
  /// The advertised Bluetooth name, unchecked; nil while none was received.
  package internal(set) var bluetoothName: String?
  /// Signal strength in dBm of the last advertisement that its adapter received; if it is only heard: the mean, followed in
  /// steps of 10 dB.
  package internal(set) var rssi: Int?
  /// Whether bluetoothd has a bond with it.
  package internal(set) var isPaired = false
  package internal(set) var session = SessionState.absent
  /// Why the device is not connected, as far as is known; nil once it is.
  package internal(set) var trouble: Trouble?
  /// Whether the device is online: its link is live, or its next visit or turn is not overdue; one that is only heard: whether it
  /// was heard in time.
  package internal(set) var isOnline = false
  /// The begin of its last link in this run; if it is only heard, since when it was heard without a pause.
  @FollowsClock package internal(set) var lastConnected: Timestamp?
  /// When the device went offline in this run; nil while it is online, and before it was.
  @FollowsClock package internal(set) var offlineSince: Timestamp?
  /// How many times the advertisements of a device that is only heard were reported since ``heardSince``.
  package internal(set) var timesHeard = 0
  /// When it came online, if it is only heard: unlike ``lastConnected``, whatever the clock is set to since.
  package internal(set) var heardSince: Moment?
  /// The device's place among those that wait for a link; nil: it does not wait for one.
  package internal(set) var turn: LinkTurn?
  /// The adapter of its last link, or the one that heard it first, as BlueZ names it; nil while it is offline.
  package internal(set) var adapter: String?
  /// The ``DeviceRecord/offered`` properties that the last link lacks, or that cannot be used on it.
  package internal(set) var missing: Set<String> = []
  /// The ids of objects of BTHome that it has sent, and that are not known.
  package internal(set) var unknownObjects: Set<UInt8> = []
  /// The values that the device's program names itself, in the order of their names.
  package internal(set) var namedValues: [NamedValue] = []
  /// Whether a receiver by radio forwards what is sent to its program.
  package internal(set) var isSentToByRadio = false
  /// Whether model, firmware and serial number are being read for the first time.
  package internal(set) var isInformationPending = false

  /// What people call the device.
  package var name: String? { settings.name ?? bluetoothName }
  package var address: BluetoothAddress { settings.address }
  /// The profile with the properties in use only, as they are adjusted.
  package var profile: Profile { settings.adjustedProfile }
  /// The five letters that a micro:bit shows; nil: it is another peripheral, or has not sent them.
  var letters: String? {
    address.radioSender?.name?.description ?? bluetoothName.flatMap(Profile.microbitLetters)
  }
  /// The ``trouble`` in words.
  package var lastError: String? { trouble?.text(profile) }
  /// Whether a request to pair may mend the ``trouble``.
  package var wantsPairing: Bool { settings.pairing != .never && trouble?.wantsPairing == true }
  /// Whether the device is not stored with an id yet, and has the five letters that it got as its id when it joined.
  package var hasNewLetters: Bool {
    record.id == nil && record.requested.changes.id == id && letters == id.description
  }
  /// Whether one gateway alone can use the device at a time; else any number of them hears it.
  package var isExclusive: Bool { profile.hasLinks }
  /// See ``DeviceRecord/Requested/isDeleted``.
  package var isDeleted: Bool { record.requested.isDeleted }
  /// The value that a property is to hold.
  package func desired(_ property: Property) -> DesiredValue { settings.desired(property, record) }

  /// Whether the device may have the property, as far as is known.
  package func mayOffer(_ property: String) -> Bool { record.offered?.contains(property) ?? true }

  /// The properties that are published: if its profile is automatic, those that it may offer.
  package var properties: [Property] {
    profile.isAutomatic ? profile.properties.filter { mayOffer($0.name) } : profile.properties
  }

  /// The properties of the profile, and the values that the device's program names itself.
  package var allProperties: [Property] { profile.properties + namedValues.map(\.property) }

  /// The place in ``allProperties`` of a value that the device's program names itself; nil: it is no longer published.
  package func place(of key: ValueKey) -> Int? {
    namedValues.firstIndex { $0.key == key }.map { profile.properties.count + $0 }
  }

  /// The property that a reading is of; nil: its value is no longer published.
  package func property(of reading: Reading) -> Property? {
    guard let key = reading.key else { return profile.properties[reading.property] }
    return namedValues.first { $0.key == key }?.property
  }

  /// The names of the properties and values that are published.
  package var propertyNames: Set<String> { Set(properties.map(\.name) + namedValues.map(\.property.name)) }

  /// Whether the device has a data log, as far as is known, or one is expected.
  package var mayHaveLog: Bool { settings.log || record.log != nil }

  /// The property that sends values to its program. By radio it is `Property.radioSetter`, which no profile lists.
  package var valueSetter: Property? {
    profile.values?.sent.map { profile.properties[$0] } ?? (isSentToByRadio ? .radioSetter : nil)
  }

  /// The property that a command for `name` sets; nil: there is none. Values of its program are set by ``valueSetter``.
  package func setter(named name: String) -> Property? {
    name.hasPrefix(NamedValue.prefix) ? valueSetter : profile.property(named: name)
  }

  /// Whether the device's last link offers the lines of values.
  package var hasLines: Bool {
    guard let lines = profile.values.map({ profile.properties[$0.received].name }) else { return false }
    return mayOffer(lines) && !missing.contains(lines)
  }

  /// Learns what the link offers now. A new link has the whole program: what that lacks is gone, if the profile is automatic.
  /// What a link loses may come back: the peripheral, or bluetoothd, may be about to replace its services. The caller stores
  /// ``DeviceRecord/offered``.
  mutating func learn(offered now: Set<String>, usable: Set<String>, isNewLink: Bool) {
    let all = isNewLink && profile.isAutomatic ? now : (record.offered ?? []).union(now)
    record.offered = all
    missing = all.subtracting(usable)
  }
}
