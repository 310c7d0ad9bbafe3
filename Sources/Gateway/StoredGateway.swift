import Configuration
import Devices
import Store

/// What a command knows of a gateway without asking it: its configuration, and what its state database has.
struct StoredGateway: Sendable {
  /// The configuration with the fleet's that the database has, if it fits.
  var configuration: Configuration
  let id: GatewayID
  /// What has joined, was removed, or was changed by requests.
  var records: [DeviceRecord] = []
  /// The addresses of the adapters that were used last, by their configured names.
  var adapters: [String: [UInt8]] = [:]

  /// Records with nothing but the identity addresses of peripherals with private ones.
  var identities: [String: [UInt8]] {
    records.filter { $0.identity != nil }.reduce(into: [:]) { identities, record in
      var known = DeviceRecord(address: record.address)
      known.identity = record.identity
      identities[record.address.description] = known.bytes
    }
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
    self.init(configuration: configuration, id: StateFolder.gatewayID(of: configuration))
    readState(with: file)
  }

  /// Reads the state database; one that cannot be read is left out. Blocks.
  /// - Parameter file: may take the fleet's configuration.
  mutating func readState(
    with file: ConfigurationFile?, _ environment: [String: String] = StateFolder.environment
  ) {
    let database = StateFolder.databaseToRead(id, environment)
    let sections = database.flatMap { try? StateDatabase.sections(path: $0.path) } ?? [:]
    records = DeviceRecord.records(sections["devices"] ?? [:])
    adapters = sections["adapters"] ?? [:]
    guard let file, file.configuration.fleet, let fleet = sections[Fleet.section]?[Fleet.key] else { return }
    configuration = (try? FleetConfiguration.read(fleet).merged(into: file)) ?? configuration
  }
}
