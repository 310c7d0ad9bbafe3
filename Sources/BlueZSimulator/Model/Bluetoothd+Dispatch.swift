import EventLoop
import DBus

/// The dispatch of method calls: of those that ``ObjectTree/hasMethod(_:)`` lets through.
extension Bluetoothd {
  mutating func dispatch(_ request: DBusCall, at now: Moment) throws(DBusError) {
    if request.interface == DBusName.introspectable, request.member == "Introspect", request.signature == "",
      let document = tree.introspection(of: request.path)
    {
      return reply(to: request, .string(document))
    }
    guard let role = tree.role(of: request.path) else { throw .unknownObject(unknown(request)) }
    guard tree.hasMethod(request) else { throw .unknownMethod(unknown(request)) }
    switch (role, request.interface) {
    case (_, DBusName.properties): try propertyCall(request, at: now)
    case (.root, DBusName.objectManager): reply(to: request, tree.managedObjects())
    case (.manager, BlueZName.agentManager): try agentCall(request)
    case (.adapter(let number), BlueZName.adapter): try adapterCall(request, number, at: now)
    case (.device(let index), BlueZName.device): try deviceCall(request, index, at: now)
    case (.characteristic(let index, let handle), BlueZName.characteristic):
      try characteristicCall(request, index, handle, at: now)
    case (.descriptor(let index, let handle), BlueZName.descriptor):
      try descriptorCall(request, index, handle)
    default: throw .unknownMethod(unknown(request))
    }
  }

  func unknown(_ request: DBusCall) -> String {
    "Method \"\(request.member)\" with signature \"\(request.signature)\" on interface "
      + "\"\(request.interface ?? "")\" doesn't exist\n"
  }

  private mutating func adapterCall(
    _ request: DBusCall, _ number: Int, at now: Moment
  ) throws(DBusError) {
    switch request.member {
    case "SetDiscoveryFilter": try setDiscoveryFilter(request, number)
    case "StartDiscovery": try startDiscovery(request, number, at: now)
    case "StopDiscovery": try stopDiscovery(request, number, at: now)
    case "GetDiscoveryFilters": reply(to: request, .strings(DiscoveryFilter.keys))
    case "RemoveDevice": try removeDevice(request, at: now)
    default: break
    }
  }

  private mutating func deviceCall(
    _ request: DBusCall, _ index: DeviceKey, at now: Moment
  ) throws(DBusError) {
    switch request.member {
    case "Connect": try connect(request, index, at: now)
    case "Disconnect": disconnect(request, index, at: now)
    case "Pair": try pair(request, index, at: now)
    case "CancelPairing": try cancelPairing(request, index, at: now)
    default: break
    }
  }

  private mutating func characteristicCall(
    _ request: DBusCall, _ index: DeviceKey, _ handle: UInt16, at now: Moment
  ) throws(DBusError) {
    guard let characteristic = peripherals[index].database.characteristic(handle) else { return }
    switch request.member {
    case "ReadValue": try read(request, index, characteristic, at: now)
    case "WriteValue": try write(request, index, characteristic, at: now)
    case "StartNotify": try startNotify(request, index, characteristic, at: now)
    case "StopNotify": try stopNotify(request, index, handle)
    case "AcquireNotify": try acquireNotify(request, index, characteristic, at: now)
    // bluetoothd answers so without write-without-response; otherwise not simulated.
    case "AcquireWrite": throw .notSupported
    default: break
    }
  }

  private mutating func descriptorCall(
    _ request: DBusCall, _ index: DeviceKey, _ handle: UInt16
  ) throws(DBusError) {
    guard devices[index]?.isUsable == true else { throw .notConnected }
    guard request.member == "ReadValue" else { throw .writeNotPermitted }
    // The client configuration is constant: whether there are subscriptions is not simulated.
    let value = DBusValue.bytes(peripherals[index].database.descriptor(handle)?.value ?? [])
    emit(tree.set(request.path, BlueZName.descriptor, [("Value", value)]))
    reply(to: request, value)
  }
}
