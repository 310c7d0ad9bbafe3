import DBus

/// The dispatch of method calls: of those that ``ObjectTree/hasMethod(_:)`` lets through.
extension Bluetoothd {
  mutating func dispatch(_ request: DBusCall) throws(DBusError) {
    if request.interface == DBusName.introspectable, request.member == "Introspect", request.signature == "",
      let document = tree.introspection(of: request.path)
    {
      return reply(to: request, .string(document))
    }
    guard let role = tree.role(of: request.path) else { throw .unknownObject(unknown(request)) }
    guard tree.hasMethod(request) else { throw .unknownMethod(unknown(request)) }
    if request.interface == DBusName.properties { return try propertyCall(request) }
    switch (role, request.member) {
    case (.root, "GetManagedObjects"): reply(to: request, tree.managedObjects())
    case (.manager, _) where request.interface == BlueZName.agentManager: try agentCall(request)
    case (.adapter(let number), "SetDiscoveryFilter"): try setDiscoveryFilter(request, number)
    case (.adapter(let number), "StartDiscovery"): try startDiscovery(request, number)
    case (.adapter(let number), "StopDiscovery"): try stopDiscovery(request, number)
    case (.adapter, "GetDiscoveryFilters"): reply(to: request, .strings(DiscoveryFilter.keys))
    case (.adapter, "RemoveDevice"): try removeDevice(request)
    case (.device(let index), "Connect"): try connect(request, index)
    case (.device(let index), "Disconnect"): disconnect(request, index)
    case (.device(let index), "Pair"): try pair(request, index)
    case (.device(let index), "CancelPairing"): try cancelPairing(request, index)
    case (.characteristic(let index, let handle), _): try characteristicCall(request, index, handle)
    case (.descriptor(let index, let handle), _): try descriptorCall(request, index, handle)
    default: throw .unknownMethod(unknown(request))
    }
  }

  private func unknown(_ request: DBusCall) -> String {
    "Method \"\(request.member)\" with signature \"\(request.signature)\" on interface "
      + "\"\(request.interface ?? "")\" doesn't exist\n"
  }

  private mutating func characteristicCall(
    _ request: DBusCall, _ index: DeviceKey, _ handle: UInt16
  ) throws(DBusError) {
    guard let characteristic = peripherals[index].database.characteristic(handle) else { return }
    switch request.member {
    case "ReadValue": try read(request, index, characteristic)
    case "WriteValue": try write(request, index, characteristic)
    case "StartNotify": try startNotify(request, index, characteristic)
    case "StopNotify": try stopNotify(request, index, handle)
    case "AcquireNotify": try acquireNotify(request, index, characteristic)
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
