import EventLoop
import DBus

/// The dispatch of method calls.
extension Bluetoothd {
  mutating func dispatch(_ request: Request, at now: Moment) throws(BluetoothdError) {
    if request.interface == DBusName.introspectable, request.member == "Introspect", request.signature == "",
      let document = tree.introspection(of: request.path)
    {
      return emit(.reply(request.id, [.string(document)]))
    }
    guard let role = tree.role(of: request.path) else { throw .unknownObject(unknown(request)) }
    switch request.interface {
    case DBusName.properties where role != .root: return try property(request, role, at: now)
    case DBusName.objectManager where role == .root:
      guard request.member == "GetManagedObjects", request.signature == "" else {
        throw .unknownMethod(unknown(request))
      }
      return emit(.reply(request.id, [tree.managedObjects()]))
    default: break
    }
    let known: Bool
    switch (role, request.interface) {
    case (.adapter(let number), BlueZName.adapter): known = try adapterCall(request, number, at: now)
    case (.device(let index), BlueZName.device): known = try deviceCall(request, index, at: now)
    case (.characteristic(let index, let handle), BlueZName.characteristic):
      known = try characteristicCall(request, index, handle, at: now)
    case (.descriptor(let index, let handle), BlueZName.descriptor):
      known = try descriptorCall(request, index, handle)
    case (.manager, BlueZName.agentManager): known = try agentCall(request)
    default: known = false
    }
    guard known else { throw .unknownMethod(unknown(request)) }
  }

  func unknown(_ request: Request) -> String {
    "Method \"\(request.member)\" with signature \"\(request.signature)\" on interface "
      + "\"\(request.interface)\" doesn't exist\n"
  }

  private mutating func adapterCall(
    _ request: Request, _ number: Int, at now: Moment
  ) throws(BluetoothdError) -> Bool {
    switch (request.member, request.signature) {
    case ("SetDiscoveryFilter", "a{sv}"): try setDiscoveryFilter(request, number)
    case ("StartDiscovery", ""): try startDiscovery(request, number, at: now)
    case ("StopDiscovery", ""): try stopDiscovery(request, number, at: now)
    case ("GetDiscoveryFilters", ""): emit(.reply(request.id, [.strings(DiscoveryFilter.keys)]))
    case ("RemoveDevice", "o"): try removeDevice(request, at: now)
    default: return false
    }
    return true
  }

  private mutating func deviceCall(
    _ request: Request, _ index: DeviceKey, at now: Moment
  ) throws(BluetoothdError) -> Bool {
    switch (request.member, request.signature) {
    case ("Connect", ""): try connect(request, index, at: now)
    case ("Disconnect", ""): disconnect(request, index, at: now)
    case ("Pair", ""): try pair(request, index, at: now)
    case ("CancelPairing", ""): try cancelPairing(request, index, at: now)
    default: return false
    }
    return true
  }

  private mutating func characteristicCall(
    _ request: Request, _ index: DeviceKey, _ handle: UInt16, at now: Moment
  ) throws(BluetoothdError) -> Bool {
    guard let characteristic = peripherals[index].database.characteristic(handle) else { return false }
    switch (request.member, request.signature) {
    case ("ReadValue", "a{sv}"): try read(request, index, characteristic, at: now)
    case ("WriteValue", "aya{sv}"): try write(request, index, characteristic, at: now)
    case ("StartNotify", ""): try startNotify(request, index, characteristic, at: now)
    case ("StopNotify", ""): try stopNotify(request, index, handle)
    case ("AcquireNotify", "a{sv}"): try acquireNotify(request, index, characteristic, at: now)
    // bluetoothd answers so without write-without-response; otherwise not simulated.
    case ("AcquireWrite", "a{sv}"): throw .notSupported
    default: return false
    }
    return true
  }

  private mutating func descriptorCall(
    _ request: Request, _ index: DeviceKey, _ handle: UInt16
  ) throws(BluetoothdError) -> Bool {
    switch (request.member, request.signature) {
    case ("ReadValue", "a{sv}"):
      guard devices[index]?.isUsable == true else { throw .notConnected }
      // The client configuration is constant: whether there are subscriptions is not simulated.
      let value = DBusValue.bytes(peripherals[index].database.descriptor(handle)?.value ?? [0, 0])
      emit(tree.set(request.path, BlueZName.descriptor, [("Value", value)]))
      emit(.reply(request.id, [value]))
    case ("WriteValue", "aya{sv}"):
      guard devices[index]?.isUsable == true else { throw .notConnected }
      throw .writeNotPermitted
    default: return false
    }
    return true
  }
}
