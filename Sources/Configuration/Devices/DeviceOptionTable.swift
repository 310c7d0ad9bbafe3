import GATT
import JSON

/// The options of a device, each declared here and nowhere else: its name in JSON, its rule, its default, and what else
/// is to be known of it. From that come the keys of an entry of config.json, of the requests `device/add` and
/// `device/options`, and of the stored record, the properties of ``DeviceOptions`` and of the device's settings, and the
/// rows of `check`. deploy/config.schema.json is compared with it by a test.
///
/// A class, as a key path copies the whole of a struct to get one option.
package final class DeviceOptionTable: Sendable {
  package static let table = DeviceOptionTable()

  /// The options in the order in which they are written.
  package static let all: [any DeviceOptionDeclaration] = [
    table.id, table.name, table.area, table.profile, table.properties, table.exclude, table.values,
    table.adjust, table.desired, table.period, table.isEnabled, table.gateway, table.adapter, table.pairing,
    table.passkey, table.key, table.keyFile,
    table.connect, table.every, table.offlineAfter, table.log,
  ]

  /// The id; nil: the address. Where several peripherals match an entry, the first one found gets its id, and the
  /// others use their addresses.
  package let id = DeviceOption<DeviceID, DeviceID?>(
    "id", .deviceID, requests: .add(otherwise: "use the request device/rename"))

  /// The name for users; nil: the Bluetooth name.
  package let name = DeviceOption<String, String?>("name", .label)

  /// Where the device is; nil: unknown. An entry without it has the gateway's.
  package let area = DeviceOption<String, String?>("area", .label)

  /// The name of the profile.
  package let profile = DeviceOption<String, String>(
    "profile", .text(longest: TopicWord.longest), default: Profile.microbit.name,
    requests: .add(otherwise: "change it in config.json, or with device/remove and device/add"))

  /// The properties that are used; ``DeviceOptions/automatic`` stands for those that the peripheral has of
  /// ``Profile/automaticProperties``. Those of ``desired`` are used as well.
  package let properties = DeviceOption<[String], [String]>(
    "properties", .oneOrMore(.propertyName), default: [DeviceOptions.automatic])

  /// The properties of those that are not used; with ``DeviceOptions/automatic``, of the automatic ones.
  package let exclude = DeviceOption<[String], [String]>("exclude", .list(of: .propertyName), default: [])

  /// How the values are shown that the program names itself, by lines `name:value`; or that they are not used.
  package let values = DeviceOption<ValueSettings, ValueSettings>(
    "values", .values, default: .on([]), setsMembers: true)

  /// What becomes of the values of properties before they are published.
  package let adjust = DeviceOption<[Named<Adjustment>], [Named<Adjustment>]>(
    "adjust", .members(of: .section), default: [], setsMembers: true)

  /// The values that properties are to hold, as JSON; ``Configuration/desired(of:)`` decodes them.
  package let desired = DeviceOption<[Named<JSONValue>], [Named<JSONValue>]?>(
    "desired", .members(of: .any), setsValues: true)

  /// Short for `desired.period`: of a micro:bit, the period of the temperature, in ms.
  package let period = DeviceOption<Int, Int?>("period", .integer(20...0xFFFF), setsValues: true)

  /// Otherwise the device is known but not connected to.
  package let isEnabled = DeviceOption<Bool, Bool>("enabled", .bool, default: true)

  /// The only gateway that serves the device; nil: whichever has it in range.
  package let gateway = DeviceOption<GatewayID, GatewayID?>("gateway", .gatewayID)

  /// The only adapter that connects to the device; nil: the one that receives it best.
  package let adapter = DeviceOption<String, String?>(
    "adapter", .adapter, requests: .none, restartsLink: true)

  /// When the gateway pairs with the device.
  package let pairing = DeviceOption<Configuration.PairingMode, Configuration.PairingMode>(
    "pair", .choice(\.json), default: .ask, requests: .none)

  /// The passkey that the peripheral requires for pairing; it then has to ask for it.
  package let passkey = DeviceOption<Int, Int?>("passkey", .passkey, requests: .none, isSecret: true)

  /// The key with which the device encrypts what it advertises in BTHome.
  package let key = DeviceOption<[UInt8], [UInt8]?>("key", .encryptionKey, requests: .none, isSecret: true)

  /// The file whose first line is ``key``, which is filled in when the configuration is loaded.
  package let keyFile = DeviceOption<String, String?>("key_file", .text(longest: 4096), requests: .none)

  /// When the device is connected; nil: always, but in turns while there are more devices than links.
  package let connect = DeviceOption<Configuration.ConnectMode, Configuration.ConnectMode?>(
    "connect", .choice, restartsLink: true)

  /// The seconds between two visits to a device that is connected on demand.
  package let every = DeviceOption<Int, Int>("every", .integer(5...86_400), default: 600, restartsLink: true)

  /// How long a device that is only heard is online after it was heard; nil: as its profile says,
  /// or what it sends.
  package let offlineAfter = DeviceOption<Profile.OfflineAfter, Profile.OfflineAfter?>(
    "offline_after", .offlineAfter, requests: .none)

  /// Whether new rows of the data log of a micro:bit V2 are published.
  package let log = DeviceOption<Bool, Bool>("log", .bool, default: false)
}
