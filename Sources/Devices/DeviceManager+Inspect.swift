import BlueZ
import Configuration
import EventLoop
import GATT

/// What a peripheral offers, and the properties that use it.
package struct Inspection: Sendable {
  package struct Item: Sendable {
    package let characteristic: Characteristic
    /// The properties that use the characteristic.
    package let properties: [Property]
    /// The characteristic's value; nil if it was not read: it cannot be, it is an event in use, or see ``Inspection/unread``.
    package fileprivate(set) var value: Result<[UInt8], CentralError>?
    /// The descriptors, without the client configuration, which bluetoothd sets.
    package fileprivate(set) var descriptors: [(uuid: BluetoothUUID, value: Result<[UInt8], CentralError>?)] =
      []
  }

  /// A property of a device that is only heard.
  package struct HeardValue: Sendable {
    package let property: Property
    /// Its value in what is advertised; nil: there is none.
    package let value: Value?
    /// Why there is none.
    package let reason: String?

    fileprivate init(_ property: Property, in advertised: AdvertisedData) {
      self.property = property
      guard let bytes = property.bytes(in: advertised) else {
        (value, reason) = (nil, property.lack(in: advertised)?.text)
        return
      }
      do throws(CodecError) {
        (value, reason) = (try property.codec.decode(bytes), nil)
      } catch {
        (value, reason) = (nil, "\(error)")
      }
    }
  }

  package let peripheral: Peripheral
  /// The device that the peripheral is; nil: it is not one of this gateway.
  package let device: DeviceDescription?
  /// The device's profile, else the known profile that fits best; nil: none fits.
  package let profile: Profile?
  /// Whether the peripheral offers what the profile requires.
  package let fits: Bool
  /// The services that the profile requires, and the peripheral lacks.
  package let missingServices: [BluetoothUUID]
  package fileprivate(set) var items: [Item]
  /// The properties of a profile whose devices are only heard: the peripheral was not connected; nil: it was.
  package fileprivate(set) var heard: [HeardValue]?
  /// Why the values after the last one shown were not read; nil: all were.
  package fileprivate(set) var unread: String?

  /// The properties of the profile that the peripheral lacks, and why.
  package let missing: [(property: String, reason: String)]
}

extension DeviceManager {
  /// How long to look for a peripheral that is not in range.
  private nonisolated static let searchTimeout = Duration.seconds(10)
  /// The maximum number of inspections at a time: each connects.
  private static let mostInspections = 4
  /// The maximum number of values read in an inspection: a micro:bit with all services has about 50.
  private static let mostReads = 200
  private nonisolated static let readingTimeout = Duration.seconds(60)
  /// How long an inspection takes at most that waits for no other connect: by then it has a result, or says what hangs.
  package nonisolated static let inspectionLimit = searchTimeout + Limits().longestConnect + readingTimeout

  /// The address that a request names.
  package func address(of reference: DeviceReference) throws(RequestError) -> BluetoothAddress {
    switch reference {
    case .id(let id): try requireDevice(id).address
    case .address(let address): knownAddress(address)
    }
  }

  /// The device at an address; nil: it is none of this gateway.
  package func description(at address: BluetoothAddress) -> DeviceDescription? {
    registry.byAddress[address]?.description
  }

  package func description(of id: DeviceID) throws(RequestError) -> DeviceDescription {
    try requireDevice(id).description
  }

  /// The peripheral at an address, and the adapter that has a link or a bond with it, or receives it best; scans for
  /// it.
  private func find(
    _ address: BluetoothAddress
  ) async throws(RequestError) -> (peripheral: Peripheral, central: Central) {
    let scan = try beginScan()
    defer { end(scan) }
    let deadline = Moment.now + Self.searchTimeout
    while true {
      let session = registry.byAddress[address]?.session
      let found = context.centrals.enumerated().compactMap {
        index, central -> (peripheral: Peripheral, central: Central)? in
        guard central.state.isOn, session?.mayUse(index) != false,
          let seen = central.peripherals.first(where: { known($0).address == address }), seen.isInRange
        else { return nil }
        return (known(seen), central)
      }
      if let best = found.max(by: { $0.peripheral.rank < $1.peripheral.rank }) { return best }
      guard .now < deadline, isOn else { throw RequestError("\(address) is not in range") }
      try? await loop.sleep(for: .milliseconds(100))
    }
  }

  /// Connects to a peripheral, unless it is connected, and reads what can be read; with a profile whose devices are only heard,
  /// reads what it advertises.
  /// - Parameter settings: what holds for a peripheral that is not a device of this engine, if no entry matches it. Without any,
  ///   it is compared with the profile that fits best.
  package func inspect(
    _ reference: DeviceReference, as settings: (Peripheral) -> DeviceSettings? = { _ in nil }
  ) async throws(RequestError) -> Inspection {
    let address = try address(of: reference)
    guard inspections < Self.mostInspections else {
      throw RequestError("\(Self.mostInspections) peripherals are being inspected: try again later")
    }
    inspections += 1
    defer { inspections -= 1 }
    let (peripheral, central) = try await find(address)
    let device = registry.byAddress[address]
    // The device's session does not end the link during the inspection.
    device?.taskBegins()
    defer { device?.taskEnded() }
    let settings =
      device?.settings ?? assignment(of: address, Advertisement(peripheral)).settings ?? settings(peripheral)
    let used = device?.description.profile ?? settings?.profile
    if let heard = used ?? configuration.profile(fitting: peripheral), !heard.hasLinks {
      return inspection(of: peripheral, heard: heard, key: settings?.key)
    }
    // A link that was there before may be another program's; one that the session is ending is not.
    let wasConnected = peripheral.isConnected && !central.isEnding(peripheral.id)
    let characteristics: [Characteristic]
    do throws(CentralError) {
      characteristics = try await central.connect(peripheral.id, isPreferred: true)
    } catch {
      throw RequestError("cannot connect to \(peripheral.address): \(error)")
    }
    var inspection = inspection(of: peripheral, characteristics, used)
    await read(&inspection, on: central)
    let session = registry.byAddress[peripheral.address]?.session
    let isUsed = session.map { context.scheduler.hasLink($0.device) && $0.central === central } ?? false
    if !wasConnected, !isUsed { await central.disconnect(peripheral.id) }
    return inspection
  }

  /// Reads the values, as long as the peripheral answers and the limits are not reached. Those of events are not read
  /// while the device's session receives them.
  private func read(_ inspection: inout Inspection, on central: Central) async {
    let deadline = Moment.now + Self.readingTimeout
    let channels = registry.byAddress[inspection.peripheral.address]?.channels ?? []
    var reads = 0
    for index in inspection.items.indices {
      let characteristic = inspection.items[index].characteristic
      let descriptors = central.descriptors(of: characteristic)
        .filter { $0.uuid != BluetoothUUID(short: 0x2902) }
      // First the characteristic itself.
      let isEvent = channels.contains { $0.characteristic == characteristic && $0.notifiesReadAsEvent }
      let isRead = characteristic.flags.contains(.read) && !isEvent
      let readable = (isRead ? [nil] : []) + descriptors.indices.map(Optional.some)
      inspection.items[index].descriptors = descriptors.map { ($0.uuid, nil) }
      for place in readable {
        if reads == Self.mostReads { inspection.unread = "\(Self.mostReads) values were read" }
        if deadline <= .now { inspection.unread = "\(Self.readingTimeout) are over" }
        guard inspection.unread == nil else { break }
        reads += 1
        let value = await central.read(characteristic, place.map { descriptors[$0] })
        if case .failure(let error) = value, !error.concernsOneCharacteristic {
          inspection.unread = "\(error)"
        }
        if let place {
          inspection.items[index].descriptors[place].value = value
        } else {
          inspection.items[index].value = value
        }
      }
    }
  }

  /// - Parameter used: the profile that its devices have which are only heard.
  private func inspection(of peripheral: Peripheral, heard used: Profile, key: [UInt8]?) -> Inspection {
    let device = registry.byAddress[peripheral.address]
    // Of those that are built in, the properties that it sends.
    let profile = used.isBuiltIn ? used : configuration.profile(named: used.name) ?? used
    var (advertised, properties, unread) = (peripheral.advertised, profile.properties, String?.none)
    if profile.usesBTHome, let data = advertised.serviceData[BTHome.service] {
      var objects = device?.session.objectReader ?? ObjectReader(counter: nil)
      do throws(BTHome.Obstacle) {
        let plain = try objects.read(data, key: key, from: peripheral.address)
        advertised.serviceData[BTHome.service] = plain
        if profile.growsWithObjects {
          properties = try BTHome.Frame(plain).names.compactMap { profile.property(named: $0) }
        }
      } catch {
        (properties, unread) = ([], "\(CodecError.unreadable(error))")
      }
    }
    let values = properties.map { Inspection.HeardValue($0, in: advertised) }
    let fits = values.contains { $0.value != nil }
    return Inspection(
      peripheral: peripheral, device: device?.description, profile: profile, fits: fits,
      missingServices: [], items: [], heard: values, unread: unread, missing: [])
  }

  /// - Parameter used: the profile of the device that it is, or would be; nil: the known one that fits best.
  private func inspection(
    of peripheral: Peripheral, _ characteristics: [Characteristic], _ used: Profile?
  ) -> Inspection {
    let device = registry.byAddress[peripheral.address]
    // The whole profile, so that properties that are not in use are included.
    let known = used.map { used in [configuration.profile(named: used.name) ?? used] }
    let candidates = (known ?? Profile.builtIn + configuration.profiles).map {
      profile in
      (profile: profile, resolution: Resolution(profile, characteristics))
    }
    let best = candidates.filter { used != nil || $0.resolution.isSuitable }
      .max { $0.resolution.offered.count < $1.resolution.offered.count }
    let resolution = used.map { Resolution($0, characteristics) }
    let items = characteristics.map { characteristic in
      let properties = best.map { best in
        zip(best.profile.properties, best.resolution.characteristics).filter { $1 == characteristic }.map(\.0)
      }
      return Inspection.Item(characteristic: characteristic, properties: properties ?? [])
    }
    return Inspection(
      peripheral: peripheral, device: device?.description, profile: best?.profile,
      fits: resolution?.isSuitable ?? (best != nil), missingServices: resolution?.missingServices ?? [],
      items: items, missing: best.map { $0.resolution.missing(of: $0.profile) } ?? [])
  }
}
