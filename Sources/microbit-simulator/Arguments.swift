import BlueZSimulator
import Configuration
import EventLoop
import GATT
import Glibc
import Peripherals

/// The command line.
struct Arguments: Sendable {
  var options = SimulatorOptions()
  /// The address of the bus.
  private(set) var bus = ""
  private var allowsSystemBus = false
  /// The path of the control socket.
  var control: String?
  private var directory: String?
  /// Each with its generators, `PROPERTY=GENERATOR`; those of the micro:bits first, without a profile.
  private var profiles: [(profile: String?, generators: [String])] = [(nil, [])]

  static let help = """
    Usage: microbit-simulator [OPTION]...
    Serves org.bluez on a private D-Bus with virtual micro:bits, like bluetoothd 5.66.
    Prints "ready" when it is available; runs until stopped (Ctrl-C).

      --adapters N         number of adapters: hci0, hci1 … (1)
      --devices N          number of micro:bits (3)
      --decoys N           number of peripherals that are not micro:bits (0)
      --peripheral FILE    another peripheral, described in JSON (see below); may be repeated
      --profile NAME|FILE  another peripheral, of a profile: its name in the profiles folder, or a file *.json with one
                           profile; may be repeated
      --profiles-directory DIR
                           folder of profiles (./deploy/profiles, else /etc/microbit-gateway/profiles.d, else
                           /usr/share/microbit-gateway/profiles)
      --generate PROPERTY=GENERATOR
                           generate the values of a property of the preceding --profile, or of the micro:bits if none
                           precedes it; may be repeated
      --services LIST      services of the micro:bits, comma-separated: temperature, buttons, accelerometer, led,
                           magnetometer, pins, uart, events, log; those of generated properties are added
                           (temperature)
      --bus ADDRESS        address of the bus ($DBUS_SYSTEM_BUS_ADDRESS)
      --system-bus         allow this machine's real system bus
      --name I=NAME        full name of micro:bit I, counted from 0
      --address I=ADDRESS  address of micro:bit I
      --period MS          initial period (1000)
      --minimum-period MS  shortest period that the micro:bits accept; shorter ones are replaced by it (0)
      --pairing METHOD     require pairing: just_works, or passkey (100000 for the first micro:bit, 100001 …)
      --seed N             seed of the temperatures and signal strengths (1)
      --radio DIR          a receiver on USB, the port of which is a link in this folder
      --radio-scenario SCENARIO
                           what it receives (class_by_radio)
      --control SOCKET     unix socket for commands: one JSON object per line, answered by one per line
      --trace FILE         record the time of each notification in this file; the sensors count them

    Delays in ms; the defaults were recorded with bluetoothd:
      --connect-ms MS      Connect (470)
      --disconnect-ms MS   Disconnect (2500)
      --advertise-ms MS    until all advertisers in range are found (200)
      --scan-ms MS         between two reports of an advertiser; Connect waits for one during discovery (10700)
      --supervision-ms MS  until a link without radio is lost (420)
      --attribute-ms MS    one ATT request (0)
      --log-ms MS          between two replies about a data log (20)

      --help, --version

    \(Generator.help)

    \(RadioScenario.help)

    A peripheral's FILE; address, advertises, manufacturer_data ({"004c":"0215"}), service_data ({"180d":"01"}), value
    (hexadecimal) and a characteristic's descriptors ([{"uuid":"2901","value":"48"}]) are optional:
      {"name":"Polar","address":"E6:7A:00:00:00:01","advertises":["180d"],"services":[
        {"uuid":"180d","characteristics":[{"uuid":"2a37","flags":["notify"],"value":"0048"}]}]}
    flags: read, write-without-response, write, notify, indicate. Instead of "services" there may be "profile", a
    profile as in the gateway's configuration.

    Commands on the control socket for device I (default 0), answered by its state:
      {"op":"temp","i":I,"v":21}      fix the temperature; without v it varies again
      {"op":"value","i":I,"hex":""}   set the bytes of the temperature characteristic
      {"op":"value","i":I,"characteristic":"2a37","hex":"0048"}
                                      set another characteristic, and notify it; "service" and "instance" (from 0)
                                      distinguish characteristics of the same UUID
      {"op":"advertise","i":I,"service":"181a","hex":"0102"}
                                      advertise these bytes as data of a service; without hex: none of it
      {"op":"name","i":I,"name":"…"}  have another name, which bluetoothd reads on a link
      {"op":"log","i":I,"hex":"31312c320a"}
                                      add bytes to the data log; with "on":false: clear it first
      {"op":"writes","i":I,"characteristic":"2a37"}
                                      show the writes to it: {"count":N,"writes":["0a",…]}
      {"op":"serve","i":I,"service":"180d","on":false}
                                      remove a service; while connected, by Service Changed
      {"op":"silent","i":I,"on":true} stop the notifications
      {"op":"vanish","i":I}, {"op":"return","i":I}
      {"op":"disconnect","i":I}, {"op":"reset","i":I}
      {"op":"strength","i":I,"adapter":1,"v":-60}
                                      how well an adapter (default 0) receives it; without v: out of its range
      {"op":"forget","i":I}           lose the bond, as when a new program is flashed
    Commands for one device, or with "all":true for all, answered by a list of their states:
      {"op":"period","i":I,"v":20}    set the period; without v show it
      {"op":"subscription","i":I,"fault":"drop","count":N}
                                      drop the link at each of the next N (default 1) writes of the client
                                      configuration; 0: no more
      {"op":"subscription","i":I,"fault":"error","code":14}
                                      answer that write with this ATT error
      {"op":"subscription","i":I,"fault":"silence","ms":3000}
                                      do not answer that write, and drop the link after this time
      {"op":"pairing","i":I}          require pairing for its services; "on":false: no more; "passkey":N: with the
                                      passkey that it displays; "pairs":false: refuse it; "fault":"drop" or
                                      "silence": the next pairing fails; "identity":"…": its address is a private one,
                                      until it pairs
    Other commands:
      {"op":"list"}, {"op":"counters"}
      {"op":"power","on":false}, {"op":"plug","on":false}, each with "adapter":N (default 0)
      {"op":"plug","name":"hci2"}     it has this name from now on, as one that is plugged in again at once
      {"op":"le","on":false}          the adapter has no Bluetooth LE when it is added next by "plug"
      {"op":"scan","on":false}        the kernel refuses to scan, which StartDiscovery then shows
      {"op":"restart","how":"term","ms":100}, or how: kill
      {"op":"radio"}                  the state of --radio; with "action":
                                      "press" of sender "i", or of "all":true within "ms":50: their order; "unplug",
                                      "plug"; "write" prints "hex"

    """

  private static let options: [String: ProgramOption<Self>] = [
    "adapters": .value { $0.options.adapters = Int(try number($1, 1...9)) },
    "devices": .value { $0.options.devices = Int(try number($1, 0...10_000)) },
    "decoys": .value { $0.options.decoys = Int(try number($1, 0...10_000)) },
    "peripheral": .value { $0.options.described.append(try PeripheralDescription.parse(file: $1)) },
    "profile": .value { $0.profiles.append(($1, [])) },
    "profiles-directory": .value { $0.directory = $1 },
    "generate": .value { $0.profiles[$0.profiles.count - 1].generators.append($1) },
    "services": .value {
      $0.options.services = try $1.split(separator: ",").map { name in
        guard let service = MicroBitService(rawValue: String(name)) else {
          throw CommandLineError("unknown service: \(name)")
        }
        return service
      }
    },
    "bus": .value { $0.bus = $1 },
    "system-bus": .flag { $0.allowsSystemBus = true },
    "name": .value {
      let (index, name) = try indexed($1)
      $0.options.names[index] = name
    },
    "address": .value {
      let (index, written) = try indexed($1)
      guard let address = BluetoothAddress(written), address.radioSender == nil else {
        throw CommandLineError("not an address: \($1)")
      }
      $0.options.addresses[index] = address.description
    },
    "period": .value { $0.options.period = UInt16(try number($1, 0...65535)) },
    "minimum-period": .value { $0.options.minimumPeriod = UInt16(try number($1, 0...65535)) },
    "pairing": .value {
      guard let method = PairingMethod(rawValue: $1) else {
        throw CommandLineError("not just_works or passkey: \($1)")
      }
      $0.options.pairing = method
    },
    "seed": .value { $0.options.seed = try number($1, 0 ... .max) },
    "radio": .value { $0.options.receiver = $1 },
    "radio-scenario": .value { $0.options.scenario = try RadioScenario($1) },
    "control": .value { $0.control = $1 },
    "trace": .value { $0.options.trace = $1 },
    "connect-ms": .value { $0.options.timing.connect = try duration($1) },
    "disconnect-ms": .value { $0.options.timing.disconnect = try duration($1) },
    "advertise-ms": .value { $0.options.timing.advertising = try duration($1) },
    "scan-ms": .value { $0.options.timing.scan = try duration($1, from: 10) },
    "supervision-ms": .value { $0.options.timing.supervision = try duration($1) },
    "attribute-ms": .value { $0.options.timing.attribute = try duration($1) },
    "log-ms": .value { $0.options.timing.logReply = try duration($1) },
  ]

  init(_ arguments: [String]) throws(CommandLineError) {
    bus = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? ""
    try ProgramOption.apply(
      arguments, Self.options, to: &self, program: "microbit-simulator", help: Self.help)
    try checkBus()
    for (profile, generators) in profiles { try add(profile, generators) }
  }

  /// Refuses the real system bus unless allowed, as other programs of the machine would use the simulator.
  private mutating func checkBus() throws(CommandLineError) {
    let real = ["/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket"]
    let isReal = bus.isEmpty || real.contains { bus.hasOccurrence(of: "path=" + $0) }
    if isReal, !allowsSystemBus {
      throw CommandLineError("no private bus: use --bus, or --system-bus to serve on the real system bus")
    }
    if bus.isEmpty { bus = "unix:path=\(real[0])" }
  }

  /// Adds a peripheral of a profile, or generators to the micro:bits.
  private mutating func add(_ text: String?, _ generators: [String]) throws(CommandLineError) {
    do {
      let profile = try text.map { try Profile.named($0, in: directory) } ?? .microbit
      if !profile.hasLinks {
        throw CommandLineError(
          "--profile: \(profile.name) is only heard: describe what it advertises by --peripheral and its service_data"
        )
      }
      let made = try generators.map { try Generator($0, of: profile, seed: options.seed) }
      guard text != nil else {
        options.generators = made
        for service in MicroBitService.allCases where made.contains(where: { service.offers($0.property) }) {
          if !options.services.contains(service) { options.services.append(service) }
        }
        return
      }
      var description = PeripheralDescription(
        name: profile.advertisedName, profile: profile, advertises: profile.requires)
      description.generators = made
      options.described.append(description)
    } catch {
      throw CommandLineError("\(error)")
    }
  }

  private static func number(
    _ text: String, _ range: ClosedRange<UInt64>
  ) throws(CommandLineError) -> UInt64 {
    guard let number = UInt64(text), range.contains(number) else {
      throw CommandLineError("not a number from \(range.lowerBound) to \(range.upperBound): \(text)")
    }
    return number
  }

  private static func duration(_ text: String, from minimum: UInt64 = 0) throws(CommandLineError) -> Duration
  {
    .milliseconds(Int64(try number(text, minimum...86_400_000)))
  }

  /// `I=TEXT`.
  private static func indexed(_ text: String) throws(CommandLineError) -> (Int, String) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let index = Int(parts[0]), index >= 0 else {
      throw CommandLineError("not I=TEXT: \(text)")
    }
    return (index, String(parts[1]))
  }
}
