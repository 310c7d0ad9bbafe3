import Configuration
import Devices
import GATT
import Store

/// What a command knows of a gateway without asking it: its configuration, and what its state database has.
struct StoredGateway: Sendable {
  /// The configuration with the fleet's that the database has, if it fits.
  var configuration: Configuration
  let id: GatewayID
  /// What has joined, was removed, or was changed by requests.
  var records: [BluetoothAddress: DeviceRecord] = [:]
  /// The addresses of the adapters that were used last, by their configured names.
  var adapters: [String: [UInt8]] = [:]

  /// Records with nothing but the identity addresses of peripherals with private ones.
  var identities: [String: [UInt8]] {
    records.values.filter { $0.identity != nil }.reduce(into: [:]) { identities, record in
      var known = DeviceRecord(address: record.address)
      known.identity = record.identity
      identities[record.address.description] = known.bytes
    }
  }

  /// The addresses of devices that no entry of the configuration names.
  var withoutEntry: [BluetoothAddress] {
    records.keys.filter { !configuration.names($0) }.sorted { $0.value < $1.value }
  }

  /// What the gateway does with a peripheral.
  func assignment(_ address: BluetoothAddress, _ advertisement: Advertisement) -> Assignment {
    configuration.assignment(address, advertisement, record: records[address], in: id)
  }
}

extension StoredGateway {
  /// The gateway of a configuration; with the defaults where no file is named and none is found. Blocks.
  init(configuredBy path: String?) throws(CommandFailure) {
    var file: ConfigurationFile?
    do throws(ConfigurationErrors) {
      file = try ConfigurationFile.load(path: path)
    } catch {
      guard path == nil, error.file == nil else { throw CommandFailure(.configuration, error.advice) }
    }
    let configuration = file?.configuration ?? Configuration()
    let gateway = Self(configuration: configuration, id: StateFolder.gatewayID(of: configuration))
    self = gateway.withState(of: file)
  }

  /// The gateway with what its state database has; one that cannot be read is left out. Blocks.
  /// - Parameter file: may take the fleet's configuration.
  func withState(
    of file: ConfigurationFile?, _ environment: [String: String] = StateFolder.environment
  ) -> StoredGateway {
    var gateway = self
    let database = StateFolder.databaseToRead(id, environment)
    let sections = database.flatMap { try? StateDatabase.sections(path: $0.path) } ?? [:]
    gateway.records = DeviceRecord.records(sections["devices"] ?? [:])
    gateway.adapters = sections["adapters"] ?? [:]
    if let file, file.configuration.fleet, let fleet = sections[Fleet.section]?[Fleet.key] {
      gateway.configuration = (try? FleetConfiguration.read(fleet).merged(into: file)) ?? configuration
    }
    return gateway
  }
}
