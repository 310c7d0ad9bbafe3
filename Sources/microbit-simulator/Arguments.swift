import BlueZSimulator
import Configuration
import EventLoop
import GATT
import Glibc
import Peripherals

/// The command line.
struct Arguments: Sendable {
  /// What is printed instead: the help or the version.
  private(set) var text: String?
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
      --no-period          omit the period characteristic
      --pairing METHOD     require pairing: just_works, or passkey (100000 for the first micro:bit, 100001 …)
      --seed N             seed of the temperatures and signal strengths (1)
      --rssi-step DB       least change of a signal strength that is reported, unless a client has a filter for it: 8 as
                           bluetoothd 5.88 does (1)
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
      --temporary-ms MS    until a device that was never connected is removed (30000)
      --supervision-ms MS  until a link without radio is lost (420)
      --timeout-ms MS      until Connect to an absent device fails (40300)
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
                                      "silence": the next pairing fails
    Other commands:
      {"op":"list"}, {"op":"counters"}
      {"op":"power","on":false}, {"op":"plug","on":false}, each with "adapter":N (default 0)
      {"op":"plug","name":"hci2"}     it has this name from now on, as one that is plugged in again at once
      {"op":"le","on":false}          the adapter has no Bluetooth LE when it is added next by "plug"
      {"op":"restart","how":"term","ms":100}, or how: kill
      {"op":"radio"}                  the state of --radio; with "action":
                                      "press" of sender "i", or of "all":true within "ms":50: their order; "reset" of
                                      sender "i"; "unplug", "plug"; "write" prints "hex"

    """

  private enum Option: String, CommandLineOption {
    case adapters, devices, decoys, peripheral, profile
    case directory = "profiles-directory"
    case generate, services, bus
    case systemBus = "system-bus"
    case name, address, period
    case minimumPeriod = "minimum-period"
    case noPeriod = "no-period"
    case pairing, seed, control, trace, radio
    case scenario = "radio-scenario"
    case strengthStep = "rssi-step"
    case connect = "connect-ms"
    case disconnect = "disconnect-ms"
    case advertise = "advertise-ms"
    case scan = "scan-ms"
    case temporary = "temporary-ms"
    case supervision = "supervision-ms"
    case timeout = "timeout-ms"
    case attribute = "attribute-ms"
    case logReply = "log-ms"
    case help, version

    var takesValue: Bool {
      switch self {
      case .systemBus, .noPeriod, .help, .version: false
      default: true
      }
    }
  }

  init(_ arguments: [String]) throws(CommandLineError) {
    bus = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? ""
    let line = try CommandLineOptions<Option>(arguments)
    for (option, value) in line.options {
      try apply(option, value)
      if text != nil { return }
    }
    if let word = line.words.first { throw CommandLineError("unexpected argument: \(word)") }
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

  private mutating func apply(_ kind: Option, _ text: String) throws(CommandLineError) {
    switch kind {
    case .adapters: options.adapters = Int(try Self.number(kind, text, 1...9))
    case .devices: options.devices = Int(try Self.number(kind, text, 0...10_000))
    case .decoys: options.decoys = Int(try Self.number(kind, text, 0...10_000))
    case .peripheral:
      do throws(ConfigurationErrors) {
        options.described.append(try PeripheralDescription.parse(file: text))
      } catch {
        throw CommandLineError("--peripheral: \(error)")
      }
    case .profile: profiles.append((text, []))
    case .directory: directory = text
    case .generate: profiles[profiles.count - 1].generators.append(text)
    case .services:
      options.services = try text.split(separator: ",").map { name throws(CommandLineError) in
        guard let service = MicroBitService(rawValue: String(name)) else {
          throw CommandLineError("--services: unknown service: \(name)")
        }
        return service
      }
    case .name:
      let (index, name) = try Self.indexed(kind, text)
      options.names[index] = name
    case .address:
      let (index, written) = try Self.indexed(kind, text)
      guard let address = BluetoothAddress(written), address.radioSender == nil else {
        throw CommandLineError("--address: not an address: \(text)")
      }
      options.addresses[index] = address.description
    case .period: options.period = UInt16(try Self.number(kind, text, 0...65535))
    case .minimumPeriod: options.minimumPeriod = UInt16(try Self.number(kind, text, 0...65535))
    case .noPeriod: options.hasPeriod = false
    case .trace: options.trace = text
    case .radio: options.receiver = text
    case .scenario:
      do throws(PeripheralError) {
        options.scenario = try RadioScenario(text)
      } catch {
        throw CommandLineError("--radio-scenario: \(error)")
      }
    case .pairing:
      guard let method = PairingMethod(rawValue: text) else {
        throw CommandLineError("--pairing: not just_works or passkey: \(text)")
      }
      options.pairing = method
    case .strengthStep: options.strengthStep = Int(try Self.number(kind, text, 1...127))
    case .seed: options.seed = try Self.number(kind, text, 0 ... .max)
    case .connect: options.timing.connect = try Self.duration(kind, text)
    case .disconnect: options.timing.disconnect = try Self.duration(kind, text)
    case .advertise: options.timing.advertising = try Self.duration(kind, text)
    case .scan: options.timing.scan = try Self.duration(kind, text, from: 10)
    case .temporary: options.timing.temporary = try Self.duration(kind, text, from: 10)
    case .supervision: options.timing.supervision = try Self.duration(kind, text)
    case .timeout: options.timing.connectTimeout = try Self.duration(kind, text)
    case .attribute: options.timing.attribute = try Self.duration(kind, text)
    case .logReply: options.timing.logReply = try Self.duration(kind, text)
    case .bus: bus = text
    case .systemBus: allowsSystemBus = true
    case .control: control = text
    case .help: self.text = Self.help
    case .version: self.text = "microbit-simulator \(Version.current)\n"
    }
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
    _ kind: Option, _ text: String, _ range: ClosedRange<UInt64>
  ) throws(CommandLineError) -> UInt64 {
    guard let number = UInt64(text), range.contains(number) else {
      throw CommandLineError(
        "--\(kind.rawValue): not a number from \(range.lowerBound) to \(range.upperBound): \(text)")
    }
    return number
  }

  private static func duration(
    _ kind: Option, _ text: String, from minimum: UInt64 = 0
  ) throws(CommandLineError) -> Duration {
    .milliseconds(Int64(try number(kind, text, minimum...86_400_000)))
  }

  /// `I=TEXT`.
  private static func indexed(_ kind: Option, _ text: String) throws(CommandLineError) -> (Int, String) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let index = Int(parts[0]), index >= 0 else {
      throw CommandLineError("--\(kind.rawValue): not I=TEXT: \(text)")
    }
    return (index, String(parts[1]))
  }
}
