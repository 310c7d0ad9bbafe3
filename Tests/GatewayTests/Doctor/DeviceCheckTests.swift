import Configuration
import Findings
import GATT
import JSON
import TestSupport
import Testing

@testable import BlueZ
@testable import Devices
@testable import Gateway

struct DeviceCheckTests {
  private let profile = Profile.microbit.limited(to: ["temperature", "period"])

  private func inspection(
    fits: Bool = true, paired: Bool = false, error: CentralError? = nil, missing: [String] = [],
    services: [BluetoothUUID] = []
  ) -> Inspection {
    let peripheral = Peripheral(
      id: PeripheralID(path: "/org/bluez/hci0/dev"), address: address, name: nil, rssi: -53,
      isConnected: true, isPaired: paired)
    let temperature = Property.microbitTemperature
    let characteristic = Characteristic(
      uuid: temperature.characteristic, service: temperature.service, flags: .read, path: "/1", generation: 1,
      peripheral: peripheral.id)
    return Inspection(
      peripheral: peripheral, device: nil, profile: nil, fits: fits, missingServices: services,
      items: [
        Inspection.Item(
          characteristic: characteristic, properties: [temperature],
          value: error.map { .failure($0) } ?? .success([21]))
      ], missing: missing.map { ($0, "it has no service 180f") })
  }

  @Test func microbitWithAllPropertiesIsOK() {
    let found = DeviceCheck.finding(inspection(missing: ["button_a"]), "kitchen", profile, .ask)
    #expect(found == .ok(.device, "kitchen: -53 dBm, not paired, offers temperature, period"))
    let automatic = Profile.microbit.limited(to: ["temperature", "period", "button_a"], isAutomatic: true)
    #expect(DeviceCheck.finding(inspection(missing: ["button_a"]), "kitchen", automatic, .ask) == found)
  }

  @Test func missingTemperatureServiceIsAFault() {
    let found = DeviceCheck.finding(inspection(fits: false), "kitchen", profile, .ask)
    #expect(found.level == .fault)
    #expect(
      found.text
        == "kitchen: cannot be used: its program has no Bluetooth service for the properties in use, or it is in "
        + "pairing mode")
    #expect(found.remedy?.contains("bluetooth temperature service") == true)
  }

  @Test func wrongRequirementNamesTheServiceAndWhereToLook() throws {
    let level = Property(
      name: "level", service: BluetoothUUID(short: 0x180F), characteristic: BluetoothUUID(short: 0x2A19),
      access: .read, codec: .uint8)
    let lab = try Profile(name: "lab", properties: [level])
    let found = DeviceCheck.finding(
      inspection(fits: false, services: [BluetoothUUID(short: 0x180D)]), "desk", lab, .ask)
    #expect(
      found.text == "desk: cannot be used: it lacks the service 180d, which the profile lab requires")
    #expect(
      found.remedy
        == #"compare "requires" of the profile lab with what it has: microbit-gateway inspect desk"#)
    let properties = DeviceCheck.finding(inspection(fits: false, missing: ["level"]), "desk", lab, .ask)
    #expect(
      properties.text
        == "desk: cannot be used: it does not offer the properties of the profile lab: level (it has no service 180f)"
    )
    #expect(properties.remedy?.contains("the properties of the profile lab") == true)
  }

  @Test func propertyOfAUsersProfileThatIsMissingIsToldWithTheCause() throws {
    let level = Property(
      name: "level", service: BluetoothUUID(short: 0x180F), characteristic: BluetoothUUID(short: 0x2A19),
      access: .read, codec: .uint8)
    let lab = try Profile(name: "lab", properties: [level])
    let found = DeviceCheck.finding(inspection(missing: ["level", "other"]), "desk", lab, .ask)
    #expect(found.text == "desk: does not offer level (it has no service 180f)")
    #expect(found.remedy == "compare the profile lab with what it has: microbit-gateway inspect desk")
  }

  @Test func unansweredReadMeansPairingIsRequired() {
    let found = DeviceCheck.finding(
      inspection(error: .timedOut("ReadValue: no answer in time")), "kitchen", profile, .ask)
    #expect(found.text == "kitchen: no readings: it probably requires pairing")
    #expect(found.remedy?.hasSuffix("pair: sudo microbit-gateway pair kitchen") == true)
    #expect(found.json["cause"] == nil)
    // No pairing helps then, also on the page.
    let never = DeviceCheck.finding(
      inspection(error: .timedOut("ReadValue: no answer in time")), "kitchen", profile, .never)
    #expect(never.remedy?.hasPrefix(#"its entry in config.json has "pair": false"#) == true)
    #expect(never.json["cause"] == "never_paired")
  }

  @Test(arguments: [
    (true, CentralError.timedOut("Failed")), (true, .transient("Failed")), (false, .transient("Failed")),
    (false, .refused("Failed")),
  ])
  func otherReadErrorIsReported(isPaired: Bool, error: CentralError) {
    let found = DeviceCheck.finding(inspection(paired: isPaired, error: error), "kitchen", profile, .ask)
    #expect(found.text == "kitchen: cannot get its readings: temperature: Failed")
  }

  @Test(arguments: ["NotPermitted: Not paired", "NotAuthorized"])
  func refusalThatSaysSoMeansPairingIsRequired(text: String) {
    let found = DeviceCheck.finding(inspection(error: .refused(text)), "kitchen", profile, .ask)
    #expect(found.text == "kitchen: no readings: it probably requires pairing")
  }

  @Test func missingPropertyIsAWarning() {
    let found = DeviceCheck.finding(inspection(missing: ["period"]), "kitchen", profile, .ask)
    #expect(found.level == .warning)
    #expect(found.text == "kitchen: does not offer period")
    #expect(found.remedy?.contains("use fewer services") == true)
  }

  // MARK: In range

  private let address = BluetoothAddress("C5:A1:B2:C3:D4:E5")!

  private func classify(
    _ entries: [Configuration.Device], _ found: [Peripheral], _ records: [DeviceRecord] = []
  ) -> (Int, [Finding]) {
    var configuration = Configuration()
    configuration.devices = entries
    let check = DeviceCheck(
      stored: StoredGateway(configuration: configuration, id: GatewayID("here")!, records: records.byAddress))
    let result = check.classify(found, [])
    return (result.candidates.count, result.findings)
  }

  private var microbit: Peripheral {
    Peripheral(
      id: PeripheralID(path: "/org/bluez/hci0/dev"), address: address, name: "BBC micro:bit [zagep]",
      rssi: -60,
      isConnected: false, isPaired: false)
  }

  @Test func configuredDeviceOutOfRangeIsAWarning() throws {
    var entry = Configuration.Device()
    entry.match = .identifier(address)
    entry.id = try DeviceID("kitchen")
    let (candidates, found) = classify([entry], [])
    #expect(candidates == 0)
    #expect(found == [.notInRange("kitchen")])
    #expect(found.first?.level == .warning)
  }

  @Test func whatHasJoinedOrWasRemovedIsKnown() {
    var record = DeviceRecord(address: address)
    record.requested.isAdded = true
    record.requested.changes.id = try? DeviceID("kitchen")
    #expect(classify([], [microbit], [record]).0 == 1)
    #expect(classify([], [], [record]).1 == [.notInRange("kitchen")])
    record.requested.changes.isEnabled = false
    #expect(classify([], [microbit], [record]).0 == 0)
    var removed = DeviceRecord(address: address)
    removed.requested.isRemoved = true
    let (candidates, found) = classify([Configuration.Device()], [microbit], [removed])
    #expect(candidates == 0 && !found.contains { $0.text.contains("\(address)") })
  }

  @Test func noMatchingDeviceInRangeIsReported() {
    let (_, found) = classify([Configuration.Device()], [])
    #expect(found.first?.text == "no device that the configuration matches is in range")
  }

  @Test func matchingMicrobitInRangeIsACandidate() {
    let (candidates, found) = classify([Configuration.Device()], [microbit])
    #expect(candidates == 1)
    #expect(found.isEmpty)
  }

  @Test func deviceThatIsOnlyHeardIsNotConnectedTo() throws {
    let count = Property(
      name: "count", source: .init(.manufacturer(0x0590)), codec: .uint8)
    var configuration = Configuration()
    configuration.profiles = [try Profile(name: "visitors", properties: [count])]
    var entry = Configuration.Device()
    entry.match = .identifier(address)
    entry.options.profile = "visitors"
    configuration.devices = [entry]
    let check = DeviceCheck(stored: StoredGateway(configuration: configuration, id: GatewayID("here")!))
    var heard = microbit
    heard.advertised.manufacturerData = [0x0590: [1]]
    let result = check.classify([heard], [])
    #expect(result.candidates.isEmpty)
    #expect(result.findings == [.ok(.device, "c5a1b2c3d4e5: heard, by discovery, -60 dBm")])
    heard.advertised.manufacturerData = [0x004C: [1]]
    #expect(
      check.classify([heard], []).findings.map(\.text) == [
        "C5:A1:B2:C3:D4:E5: advertises nothing that the profile visitors takes: "
          + "no manufacturer 0x0590; it sends manufacturer 0x004c"
      ])
  }

  @Test func unmatchedMicrobitInRangeIsReported() throws {
    var entry = Configuration.Device()
    entry.match = .identifier(try #require(BluetoothAddress("C5:A1:B2:C3:D4:E6")))
    let (_, found) = classify([entry], [microbit])
    #expect(found.first?.text.contains("no entry of the configuration matches") == true)
  }

  @Test func aPeripheralThatHangsIsInspectedToTheEnd() {
    let limits = Limits()
    #expect(DeviceManager.inspectionLimit > limits.connect + limits.resolve + limits.scanStop)
  }

  // MARK: A running gateway

  /// `kill -HUP 0` would end the user's own session.
  @Test(arguments: [("kill -HUP 77", 77), ("restart the gateway", nil)] as [(String, UInt32?)])
  func changedConfigurationIsReloadedByTheProcess(remedy: String, process: UInt32?) throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("{}", to: "config.json")
    let health: JSONValue = ["configuration": ["file": .string(file), "digest": "another"]]
    #expect(GatewayCheck.changedConfiguration(health, process: process)?.remedy == remedy)
  }

  @Test func gatewayFindingReplacesDeviceState() {
    let pairing = Finding.fault(.device, "kitchen: no readings: it probably requires pairing", remedy: "pair")
    let found = GatewayCheck.findings(
      "here",
      health: [
        "version": "0", "uptime": .integer(125), "findings": .array([pairing.json]),
        "adapters": [["name": "hci0"], ["name": "hci1", "monitors": .bool(true)]],
      ],
      devices: [
        ["id": "kitchen", "session": "waiting", "paired": .bool(false)],
        ["id": "beacon", "session": "listening", "adapter": "hci0", "heard_per_minute": .integer(6)],
        ["id": "counter", "session": "listening", "adapter": "hci1", "heard_per_minute": .integer(150)],
        ["id": "hall", "session": "live", "rssi": .integer(-70), "paired": .bool(true)],
        [
          "id": "zotut", "identifier": "radio:9b4c2d1a", "session": "listening",
          "heard_per_minute": .integer(60),
        ],
      ])
    #expect(found.map(\.level) == [.warning, .fault, .ok, .ok, .ok, .ok])
    #expect(found[5] == .ok(.device, "zotut: listening, heard 60 times a minute, by radio"))
    #expect(found[2] == .ok(.device, "beacon: listening, heard 6 times a minute, by discovery"))
    #expect(
      found[3] == .ok(.device, "counter: listening, heard 150 times a minute, by advertisement monitors"))
    #expect(found.first?.text.hasPrefix("the gateway here runs version 0, and ") == true)
    #expect(found[4] == .ok(.device, "hall: live, -70 dBm, paired"))
  }
}
