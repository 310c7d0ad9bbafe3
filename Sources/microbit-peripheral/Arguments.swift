import CLinux
import Configuration
import GATT
import Glibc
import Peripherals

/// The command line.
struct Arguments: Sendable {
  enum Outcome {
    case run(Arguments)
    case help
    case version
    case invalid(String)
  }

  var adapter = "hci0"
  /// The advertised name; nil: that of the profile.
  var name: String?
  private var profile = Profile.microbit.name
  private var directory: String?
  /// `PROPERTY=GENERATOR`.
  private var generators: [(property: String, text: String)] = []

  static let help = """
    Usage: microbit-peripheral [OPTION]...
    Serves a BBC micro:bit, or a peripheral of any profile, by a Bluetooth adapter and bluetoothd. Any central can
    connect to it. Runs until stopped (Ctrl-C).

      --adapter NAME            Bluetooth adapter (hci0). A central needs another one, such as a gateway on this machine
      --profile NAME|FILE       profile: microbit, one of the profiles folder, or a file *.json with one profile (microbit)
      --profiles-directory DIR  folder of profiles (./deploy/profiles, else /etc/microbit-gateway/profiles.d, else
                                /usr/share/microbit-gateway/profiles)
      --name TEXT               advertised name (BBC micro:bit [zugev]; else the profile's model or name)
      --generate PROPERTY=GENERATOR
                                generate the values of a property; may be repeated
      --help, --version

    \(Generator.help)

    Standard input sets values, one a line: PROPERTY VALUE. Words, texts, hexadecimal digits and pictures stand as they
    are, everything else is JSON; # begins a comment:
      temperature 23
      button_a press_start
      accelerometer {"x":1,"y":2,"z":3}
    Standard output has what centrals write, in the same form: period 500
    A write whose length is wrong for the property is refused with the ATT error 0x0D.
    Standard error has the state: "serving …", "waiting: …"; and errors of the input, with the number of the line.

    Exit status: 0 stopped, 64 wrong command line, 78 wrong profile or generator.

    """

  private enum Option: Int32, CaseIterable {
    case adapter = 256
    case profile, directory, name, generate, help, version

    var name: String {
      switch self {
      case .adapter: "adapter"
      case .profile: "profile"
      case .directory: "profiles-directory"
      case .name: "name"
      case .generate: "generate"
      case .help: "help"
      case .version: "version"
      }
    }

    var takesValue: Bool { self != .help && self != .version }
  }

  static func parse(_ arguments: [String]) -> Outcome {
    // getopt keeps pointers to its arguments: they are never freed.
    var argv = arguments.map { strdup($0) } + [nil]
    var table = Option.allCases.map { kind in
      option(
        name: strdup(kind.name), has_arg: kind.takesValue ? required_argument : no_argument, flag: nil,
        val: kind.rawValue)
    }
    table.append(option(name: nil, has_arg: 0, flag: nil, val: 0))
    clinux_reset_getopt()
    var result = Arguments()
    while true {
      let code = getopt_long(Int32(arguments.count), &argv, ":", &table, nil)
      if code == -1 { break }
      guard let kind = Option(rawValue: code) else {
        let option = argv[Int(clinux_optind()) - 1].map { String(cString: $0) } ?? ""
        return .invalid(
          code == Int32(UInt8(ascii: ":")) ? "\(option) needs a value" : "unknown option \(option)")
      }
      let text = clinux_optarg().map { String(cString: $0) } ?? ""
      switch kind {
      case .help: return .help
      case .version: return .version
      case .adapter:
        guard text.hasPrefix("hci"), UInt16(text.dropFirst(3)) != nil else {
          return .invalid("--adapter: not the name of an adapter, such as hci1: \(text)")
        }
        result.adapter = text
      case .profile: result.profile = text
      case .directory: result.directory = text
      case .name:
        guard !text.isEmpty, text.utf8.count <= 248 else { return .invalid("--name: 1 to 248 bytes") }
        result.name = text
      case .generate:
        guard let equals = text.firstIndex(of: "=") else {
          return .invalid("--generate: not PROPERTY=GENERATOR: \(text)")
        }
        result.generators.append((String(text[..<equals]), String(text[text.index(after: equals)...])))
      }
    }
    if clinux_optind() < arguments.count {
      // getopt has moved operands to the end of the list.
      let word = argv[Int(clinux_optind())].map { String(cString: $0) } ?? ""
      return .invalid("unexpected argument: \(word)")
    }
    return .run(result)
  }

  /// The peripheral to serve. Blocks while it reads the files.
  func peripheral() throws(PeripheralError) -> ServedPeripheral {
    let chosen: Profile
    do throws(ConfigurationFailure) {
      chosen = try Profile.named(profile, in: directory)
    } catch {
      throw PeripheralError("\(error)")
    }
    var made: [Generator] = []
    for (property, text) in generators {
      made.append(try Generator(text, for: try chosen.served(property), seed: UInt64(made.count + 1)))
    }
    return ServedPeripheral(chosen, generators: made, at: .now)
  }
}
