import BlueZ
import Configuration
import DBus
import Findings
import GATT
import Glibc

extension CentralState {
  /// Whether Bluetooth can be used; the adapter's name is the one that it has now.
  /// - Parameter others: adapters that nobody uses.
  package func finding(adapter: String, others: [String] = []) -> Finding {
    /// - Parameter code: the key for translations.
    func fault(_ check: Finding.Check, _ code: String, _ text: String, remedy: String) -> Finding {
      .fault(check, text, remedy: remedy).coded(code, ["adapter": adapter])
    }
    return switch self {
    case .noBus(let reason):
      // A bus that has ended the connection is installed, as dbus or dbus-broker.
      fault(
        .bus, "no_bus", "no D-Bus (\(reason))",
        remedy: reason == "\(DBusError.disconnected)"
          ? "sudo systemctl status dbus; sudo systemctl start dbus"
          : "sudo apt install dbus; sudo systemctl start dbus")
    case .noBluetoothd:
      fault(
        .bluetoothd, "no_bluetoothd", "bluetoothd is not running",
        remedy: "sudo apt install bluez; sudo systemctl enable --now bluetooth")
    case .noAnswer:
      fault(
        .bluetoothd, "bluetoothd_silent", "bluetoothd does not answer",
        remedy: "sudo systemctl restart bluetooth")
    case .adapterInUse(let process):
      fault(
        .adapter, "adapter_in_use",
        "adapter \(adapter) is used by another gateway" + (process.map { " (process \($0))" } ?? ""),
        remedy: "stop the other one, for example: sudo systemctl stop microbit-gateway"
          + (process.map { "; ps -p \($0) shows what it is" } ?? ""))
    case .unauthorized:
      fault(
        .bluetoothd, "unauthorized", "the D-Bus policy does not let the user \(Self.user) use bluetoothd",
        remedy:
          "sudo usermod -aG bluetooth \(Self.user), and start it again; if that does not help, a file in "
          + "/etc/dbus-1/system.d or /usr/share/dbus-1/system.d denies org.bluez: "
          + "grep -l org.bluez /etc/dbus-1/system.d/* /usr/share/dbus-1/system.d/*")
    case .adapterUnsupported:
      fault(
        .adapter, "adapter_unsupported", "the adapter \(adapter) has no Bluetooth LE",
        remedy: "use another adapter (Bluetooth 4.0 or later), and name it in bluetooth.adapters")
    case .adapterAbsent:
      fault(
        .adapter, "adapter_absent",
        "there is no Bluetooth adapter \(adapter)"
          + (others.isEmpty ? "" : "; there is \(others.joined(separator: ", "))"),
        remedy: others.first.map {
          "name \($0) in bluetooth.adapters of the configuration, or plug \(adapter) in"
        }
          ?? "plug it in, or name another one in bluetooth.adapters: ls /sys/class/bluetooth shows which there are"
      )
    case .adapterOff:
      fault(
        .adapter, "adapter_off", "the adapter \(adapter) is off",
        // bluetoothctl knows one adapter by default.
        remedy: adapter == "hci0"
          ? "bluetoothctl power on"
          : "busctl set-property org.bluez /org/bluez/\(adapter) org.bluez.Adapter1 Powered b true")
    case .adapterBlocked:
      fault(
        .adapter, "adapter_blocked", "the adapter \(adapter) is blocked",
        remedy: "sudo rfkill unblock bluetooth")
    case .on(let name, let address):
      .ok(.adapter, "\(name) (\(address)) is on").coded(nil, ["adapter": adapter])
    }
  }

  private static let user =
    getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? "\(geteuid())"
}

extension Trouble {
  /// What is told of a trouble.
  /// - Returns: the key for translations; the text; what bluetoothd says, or what else differs from case to case; whether
  ///   somebody has to do something about it.
  private func account(_ profile: Profile) -> (code: String, text: String, reason: String?, isFault: Bool) {
    switch self {
    case .unsuitable(let lacks):
      (
        "unsuitable", "cannot be used: \(profile.missingHint?.problem ?? Self.problem(lacks, profile))", nil,
        true
      )
    case .connectFailed(let reason): ("connect_failed", "cannot connect yet: \(reason)", reason, false)
    case .unusable(let reason): ("unusable", "cannot be used: \(reason)", reason, true)
    case .linkEnded(let reason):
      ("link_ended", "the link ended" + (reason.map { ": \($0)" } ?? ""), reason, false)
    case .subscribeFailed(let reason):
      ("subscribe_failed", "cannot get its readings: \(reason)", reason, true)
    case .wantsPairing: ("wants_pairing", "no readings: it probably requires pairing", nil, true)
    case .pairingFailed(let reason): ("pairing_failed", "cannot pair: \(reason)", reason, false)
    case .bondLost(pairsAgain: true):
      ("bond_lost", "it has lost its pairing, as after a new program was flashed: pairing again", nil, false)
    case .bondLost(pairsAgain: false):
      ("bond_lost", "it has lost its pairing, as after a new program was flashed", nil, true)
    case .silent(let limit): ("silent", "no reading for \(limit): reconnecting", "\(limit)", false)
    case .unresponsive: ("unresponsive", "does not respond: reconnecting", nil, false)
    case .servicesLost:
      ("services_lost", "it or bluetoothd has removed its services: reconnecting", nil, false)
    case .unreadable(let obstacle):
      (
        "unreadable", "what it advertises cannot be used: \(CodecError.unreadable(obstacle))",
        "\(CodecError.unreadable(obstacle))", true
      )
    }
  }

  /// What is wrong with a device of this profile.
  package func text(_ profile: Profile) -> String { account(profile).text }

  private static func problem(_ lacks: Lacks, _ profile: Profile) -> String {
    guard !lacks.services.isEmpty else {
      let reasons = lacks.properties.isEmpty ? "" : ": \(lacks.properties.joined(separator: ", "))"
      return "it does not offer the properties of the profile \(profile.name)\(reasons)"
    }
    let services = lacks.services.map(\.short).joined(separator: ", ")
    return "it lacks the service \(services), which the profile \(profile.name) requires"
  }

  /// What the user can do about it; nil if the gateway mends it, or nothing is known to help.
  package func remedy(
    _ device: String, _ profile: Profile, _ pairing: Configuration.PairingMode
  ) -> String? {
    switch self {
    case .unsuitable(let lacks):
      profile.missingHint?.remedy
        ?? "compare \(lacks.services.isEmpty ? "the properties" : "\"requires\"") of the profile \(profile.name) with what it has: "
        + "microbit-gateway inspect \(device)"
    case .wantsPairing, .bondLost(pairsAgain: false):
      pairing == .never
        ? "its entry in config.json has \"pair\": false: change that, or let its program require no pairing"
        : "put it into pairing mode, if it has one, and pair: \(Self.pairingCommand(device))"
          + (self == .bondLost(pairsAgain: false)
            ? "; or delete the pairing, if it needs none" : "")
    case .unreadable(let obstacle): obstacle.remedy(device)
    case .unusable(let reason) where reason.hasSuffix(CentralError.classic):
      "unless something else needs classic Bluetooth, set ControllerMode = le in /etc/bluetooth/main.conf, then: "
        + "sudo systemctl restart bluetooth"
    case .unusable: "set \"enabled\" to false in its entry of config.json, or do not match it"
    case .servicesLost:
      "nothing, if bluetoothd was restarted; else see what its program offers: microbit-gateway inspect \(device)"
    case .connectFailed(let reason) where reason.hasSuffix(CentralError.atOnce):
      "set bluetooth.links in config.json to the connections that the adapter makes: then devices take turns"
    case .connectFailed, .linkEnded, .subscribeFailed, .pairingFailed, .bondLost(pairsAgain: true), .silent,
      .unresponsive:
      nil
    }
  }

  /// What the user types to pair with a device.
  static func pairingCommand(_ device: String) -> String { "sudo microbit-gateway pair \(device)" }

  /// - Parameter device: what the user calls it.
  package func finding(
    _ device: String, _ profile: Profile, _ pairing: Configuration.PairingMode
  ) -> Finding {
    let account = account(profile)
    let text = "\(device): \(account.text)"
    let remedy =
      self.remedy(device, profile, pairing)
      ?? "move it closer to the adapter, charge its battery, or press its reset button"
    let finding: Finding =
      account.isFault ? .fault(.device, text, remedy: remedy) : .warning(.device, text, remedy: remedy)
    // The key for translations of the most frequent reasons.
    let cause: String? =
      switch account.reason {
      case nil where self.wantsPairing && pairing == .never: "never_paired"
      case CentralError.disconnected.description: "link_gone"
      case let reason? where reason.hasSuffix(CentralError.noAnswer): "no_answer"
      case let reason? where reason.hasSuffix(CentralError.atOnce): "adapter_full"
      default: nil
      }
    return finding.coded(account.code, ["device": device, "reason": account.reason, "cause": cause])
  }
}

extension BTHome.Obstacle {
  fileprivate func remedy(_ device: String) -> String {
    switch self {
    case .encrypted:
      "give its entry in config.json its \"key\", 32 hexadecimal digits, or let it send without one"
    case .notEncrypted: "let it encrypt again, or take the \"key\" out of its entry in config.json"
    case .wrongKey: "correct the \"key\" in its entry in config.json; it is new after the device was reset"
    case .repeated:
      "nothing, if it sends by itself: its values come again after three times its usual silence, five minutes at least; "
        + "if it was reset, and sends only when something happens: disable and enable it, on the page or in Home Assistant"
    case .version: "update its program to one that sends BTHome, version 2"
    }
  }
}

extension Finding {
  /// Another program has acquired the notifications of a property.
  package static func notificationsTaken(of property: String, device: String? = nil) -> Finding {
    .fault(
      .device,
      (device.map { "\($0): " } ?? "") + "another Bluetooth program receives the values of \(property)",
      remedy:
        "stop the other program; if there is none, bluetoothd is stuck (a fault before its version 5.84): "
        + "sudo systemctl restart bluetooth")
  }

  /// No value of a property fits the profile.
  package static func misfit(
    _ device: String, _ property: String, _ reason: String, _ profile: Profile
  ) -> Finding {
    .warning(
      .device, "\(device): no value of \(property) fits the profile \(profile.name): \(reason)",
      remedy:
        "correct its type or fields in the profile (a hidden last field of bytes takes what is left over)"
        + (profile.property(named: property)?.source == nil
          ? "" : ", or at and length of its source: microbit-gateway scan shows what it sends")
    ).coded("misfit", ["device": device, "reason": "\(property): \(reason)"])
  }

  /// What a device lacks of the user's profile, and why.
  package static func notOffered(
    _ device: String, _ lacks: [(property: String, reason: String)], _ profile: Profile
  ) -> Finding {
    let reason = lacks.map { Lacks.text($0.property, $0.reason) }.joined(separator: ", ")
    return .warning(
      .device, "\(device): does not offer \(reason)",
      remedy: "compare the profile \(profile.name) with what it has: microbit-gateway inspect \(device)"
    ).coded("not_offered", ["device": device, "reason": reason])
  }

  /// What it advertises is not for its profile.
  package static func heardInVain(_ device: String, _ lack: String, _ profile: Profile) -> Finding {
    .warning(
      .device, "\(device): advertises nothing that the profile \(profile.name) takes: \(lack)",
      remedy:
        "correct data, prefix or length of its source in the profile: microbit-gateway inspect \(device)"
    ).coded("heard_in_vain", ["device": device, "reason": lack])
  }

  /// There is no room for what an entry matches, and is in range.
  package static func tooMany(_ ignored: Int) -> Finding {
    .warning(
      .device,
      (ignored == 1 ? "a peripheral in range is" : "\(ignored) peripherals in range are")
        + " ignored: there are too many devices",
      remedy: "narrow \"match\" in config.json so that fewer match, or give those that you need an entry with"
        + " their identifier: microbit-gateway scan"
    ).coded("too_many_devices", ["reason": "\(ignored)"])
  }

  /// - Parameter hasLinks: whether the adapter has links, so that a running gateway does not reset it.
  package static func cannotScan(_ adapter: String, _ problem: String, hasLinks: Bool) -> Finding {
    .fault(
      .adapter, "\(adapter) cannot scan: \(problem)",
      remedy: (hasLinks ? "the gateway does not reset it, as that ends connections; do so: " : "")
        + "sudo systemctl restart bluetooth; if that does not help, unplug the adapter, or restart the machine"
    ).coded("cannot_scan", ["adapter": adapter, "reason": problem])
  }

  /// - Parameter isRadio: whether a micro:bit on USB is to hear it, instead of Bluetooth.
  package static func notHeard(_ device: String, isRadio: Bool = false) -> Finding {
    .warning(
      .device, "\(device): not heard",
      remedy: isRadio
        ? "switch it on, closer to the receiver: its program has to send by radio, in the receiver's group"
        : "move it closer, check its power, and see whether microbit-gateway scan finds it"
    ).coded("not_heard", ["device": device])
  }

  /// No receiver is read that could hear it by radio.
  package static func radioIsOff(_ device: String) -> Finding {
    .warning(
      .device, "\(device): not heard, as radio.enabled is false",
      remedy: "set radio.enabled to true in config.json, then: sudo systemctl reload microbit-gateway"
    ).coded("radio_off", ["device": device])
  }

  package static func notInRange(_ device: String) -> Finding {
    .warning(
      .device, "\(device): not in range",
      remedy:
        "move it closer, check its power, and see whether microbit-gateway scan finds it: one that is paired can be "
        + "found only by the computer that it is paired with, and one that is connected by none"
    ).coded("not_in_range", ["device": device])
  }
}

extension DeviceManager {
  /// The maximum number of findings about devices: many may be out of range.
  private static let mostFindings = 100

  /// What is wrong with the adapters, by their configured names.
  package var adapterFaults: [(adapter: String, fault: Finding)] {
    let used = context.centrals.map(\.currentName)
    return context.centrals.compactMap { central in
      let name = central.currentName
      if !central.shownState.isOn {
        let others = central.otherAdapters.filter { !used.contains($0) }
        return (central.adapterName, central.shownState.finding(adapter: name, others: others))
      }
      guard let recovery = central.recovery else { return nil }
      return (central.adapterName, .cannotScan(name, recovery.reason, hasLinks: central.hasAnyLink))
    }
  }

  /// What is wrong with the adapters and with the devices, as far as the engine knows.
  package var findings: [Finding] {
    var faults = radioFindings
    for (_, fault) in adapterFaults where !faults.contains(fault) { faults.append(fault) }
    // Another adapter may have found it, too.
    let ignored = Set(
      registry.ignored.filter(\.value.isOverLimit).map { $0.key.path.split(separator: "/").last }
    ).count
    if ignored > 0 { faults.append(.tooMany(ignored)) }
    // Without an adapter no device is in range, but what is heard by radio needs none.
    let devices = registry.all.filter { isOn || $0.address.radioSender != nil }
    let sorted = devices.sorted { $0.id.description < $1.id.description }
    let found = Array(
      sorted.lazy.compactMap { $0.finding(isConfigured: self.isConfigured($0.address)) }.prefix(
        Self.mostFindings))
    return faults + (found + deafProfiles + Self.misfits(of: sorted)).prefix(Self.mostFindings)
  }

  /// Profiles that no device has, as what their entries match in range sends nothing for them: the strongest peripheral stands
  /// for all.
  private var deafProfiles: [Finding] {
    guard registry.ignored.values.contains(where: { $0.deaf != nil }) else { return [] }
    var told = Set(registry.all.map(\.description.profile.name))
    let found = context.centrals.flatMap(\.peripherals).filter { $0.rssi != nil }
    return found.sorted { ($0.rssi ?? 0) > ($1.rssi ?? 0) }.compactMap { peripheral in
      guard let profile = registry.ignored[peripheral.id]?.deaf,
        let lack = profile.lack(in: peripheral.advertised), told.insert(profile.name).inserted
      else { return nil }
      return .heardInVain(peripheral.address.description, lack, profile)
    }
  }

  /// Values that do not fit the user's profiles: the first device stands for all, as they share the mistake.
  private static func misfits(of devices: [Device]) -> [Finding] {
    var told: Set<String> = []
    return devices.flatMap { device -> [Finding] in
      let profile = device.description.profile
      guard !profile.isBuiltIn, !device.owner.isOther, device.settings.isEnabled else { return [] }
      return device.channels.compactMap { channel in
        guard let reason = channel.misfit, told.insert("\(profile.name).\(channel.property.name)").inserted
        else { return nil }
        return .misfit(device.id.description, channel.property.name, reason, profile)
      }
    }
  }

  /// The command that pairs with a device that wants it; with the first one's id, if there are several.
  package var pairingCommand: String? {
    registry.all.filter { !$0.owner.isOther && $0.settings.isEnabled && $0.description.wantsPairing }
      .map(\.id.description).min().map(Trouble.pairingCommand)
  }
}

extension Device {
  /// What is wrong with it; nil if nothing is, or if another gateway owns it.
  /// - Parameter isConfigured: whether an entry has its address, or a request was about it.
  fileprivate func finding(isConfigured: Bool) -> Finding? {
    guard !owner.isOther, settings.isEnabled else { return nil }
    let name = id.description
    switch session.lastError {
    // A device whose link ended may be connected again at once.
    case nil, .linkEnded: break
    case .some(let trouble): return trouble.finding(name, description.profile, settings.pairing)
    }
    if let polled = channels.first(where: { $0.areNotificationsTaken }) {
      return .notificationsTaken(of: polled.property.name, device: name)
    }
    if state == .listening, !description.isOnline, channels.allSatisfy({ $0.misfit == nil }) {
      if isConfigured || !isAnonymous, let lack = session.lack {
        return .heardInVain(name, lack, description.profile)
      }
      if isAnonymous { return nil }
      let isRadio = address.radioSender != nil
      if isRadio, context.transmitter.receivers == nil { return .radioIsOff(name) }
      return isRadio || context.canScan ? .notHeard(name, isRadio: isRadio) : nil
    }
    if state == .absent { return context.canScan ? .notInRange(name) : nil }
    return lacks.isEmpty ? nil : .notOffered(name, lacks, description.profile)
  }
}
