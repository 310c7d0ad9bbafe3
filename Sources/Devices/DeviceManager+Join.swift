import Configuration
import EventLoop
import GATT
import Log
import Radio

/// The permission for micro:bits that no entry matches to join, and so to be added for good.
package struct PermitJoin: Sendable, Equatable {
  package let end: ClockTime
  /// The only micro:bit that may join; nil: all.
  package let device: BluetoothAddress?
  /// How many more may join: anybody can advertise the name of a micro:bit.
  var rest = most
  /// Devices that were removed meanwhile: they do not join again at once.
  var removed: Set<BluetoothAddress> = []

  static let most = 64
}

extension DeviceManager {
  /// The maximum time in which micro:bits may join, in seconds.
  package nonisolated static let longestPermitJoin = 3600

  /// Adds micro:bits that are in range meanwhile.
  ///
  /// - Parameters:
  ///   - seconds: 0: no longer.
  ///   - device: the only one, also if it was removed; nil: all.
  package func permitJoin(seconds: Int, device: BluetoothAddress?) {
    let time = Duration.seconds(seconds)
    joinTimer.set(seconds > 0 ? .now + time : nil) { [weak self] in
      self?.permitJoin(seconds: 0, device: nil)
    }
    permitJoin = nil
    if seconds > 0 {
      permitJoin = PermitJoin(end: ClockTime(.now + time, at: .now + time), device: device)
      registry.ignored = [:]
      replayPeripherals()
    }
    log.notice(seconds > 0 ? "micro:bits may join for \(seconds) s" : "no more micro:bits may join")
    updateScanLater()
    engineChanged()
  }

  /// Adds a peripheral that is not known, if it may join.
  func join(_ address: BluetoothAddress, _ advertisement: Advertisement) {
    let name = advertisement.name
    let isMicrobit = name?.hasPrefix(Profile.microbitNamePrefix) == true
    guard mayJoin(address, advertisement, isMicrobit: isMicrobit) else { return }
    join(address, name: name, letters: name.flatMap(Profile.microbitLetters))
  }

  /// Whether a packet is of a micro:bit: what a receiver prints without a sender may be anything but values.
  func isMicrobit(_ packet: RadioPacket, _ sender: RadioSender) -> Bool {
    sender.name != nil || ProgramValue.values(in: packet.message, name: packet.valueName).isOnlyValues
  }

  /// Adds the sender of a packet, if it may join.
  func join(_ packet: RadioPacket, from address: BluetoothAddress) {
    guard permitJoin != nil, hasRoomForSender, let sender = address.radioSender else { return }
    guard mayJoin(address, Advertisement(), isMicrobit: isMicrobit(packet, sender)) else { return }
    let letters = sender.name?.description
    join(address, name: letters, letters: letters)
  }

  private func mayJoin(_ address: BluetoothAddress, _ advertisement: Advertisement, isMicrobit: Bool) -> Bool
  {
    guard let permit = permitJoin, permit.rest > 0, !permit.removed.contains(address), hasRoom else {
      return false
    }
    return switch assignment(of: address, advertisement) {
    case .unmatched where permit.device == nil: isMicrobit
    case .unmatched, .removed: permit.device == address
    case .here, .elsewhere: false
    }
  }

  private func join(_ address: BluetoothAddress, name: String?, letters: String?) {
    permitJoin?.rest -= 1
    store.change(address) { ($0.requested.isAdded, $0.requested.isRemoved) = (true, false) }
    if let id = lettersID(letters, address) { store.change(address) { $0.requested.changes.id = id } }
    log.notice("joined", ["address": address, "name": name ?? "unknown"])
  }

  /// The five letters of a micro:bit as its id; nil: it has an id, or its entry gives it one, or another one has these letters.
  func lettersID(_ letters: String?, _ address: BluetoothAddress) -> DeviceID? {
    let record = store.record(address)
    guard record.requested.changes.id == nil,
      configuration.device(matching: address, record.advertisement) == nil
    else { return nil }
    return freeID(ofLetters: letters, for: address)
  }

  /// The five letters of a micro:bit as its id; nil: another one has these letters.
  func freeID(ofLetters letters: String?, for address: BluetoothAddress) -> DeviceID? {
    guard let letters, letters.utf8.count == 5,
      letters.utf8.allSatisfy({ (0x61...0x7A).contains($0) }), let id = try? DeviceID(letters),
      registry.byID[id].map({ $0.address == address }) ?? true,
      !configuration.devices.contains(where: { $0.topicName == letters })
    else { return nil }
    return id
  }
}
