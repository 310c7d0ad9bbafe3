import Configuration
import EventLoop
import GATT
import Peripherals

/// The command line.
struct Arguments: Sendable {
  var adapter = "hci0"
  /// The advertised name; nil: that of the profile.
  var name: String?
  private var profile = Profile.microbit.name
  private var directory: String?
  /// `PROPERTY=GENERATOR`.
  private var generators: [String] = []

  static let help = """
    Usage: microbit-peripheral [OPTION]...
    Makes a Bluetooth adapter act as a BBC micro:bit, or as a peripheral of any profile. Any central can connect to
    it. Needs bluetoothd. Runs until stopped (Ctrl-C).

      --adapter NAME            Bluetooth adapter (hci0); a gateway on this machine needs another one
      --profile NAME|FILE       microbit, a profile in the folder, or a file *.json with one profile (microbit)
      --profiles-directory DIR  folder of profiles (./deploy/profiles, else /etc/microbit-gateway/profiles.d, else
                                /usr/share/microbit-gateway/profiles)
      --name TEXT               advertised name (BBC micro:bit [zugev]; else the profile's model or name)
      --generate PROPERTY=GENERATOR
                                generate the values of a property; may be repeated
      --help, --version

    \(Generator.help)

    Standard input sets values, one per line: PROPERTY VALUE. Words, texts, hexadecimal digits and pictures are written
    without quotes, everything else is JSON; # begins a comment:
      temperature 23
      button_a press_start
      accelerometer {"x":1,"y":2,"z":3}
    Each write by a central is printed on standard output in the same form: period 500
    A write whose length is wrong for the property is refused with the ATT error 0x0D.
    The state ("serving …", "waiting: …") and errors of the input, with their line numbers, go to standard error.

    Exit status: 0 stopped, 64 wrong command line, 78 wrong profile or generator.

    """

  private static let options: [String: ProgramOption<Self>] = [
    "adapter": .value {
      guard $1.hasPrefix("hci"), UInt16($1.dropFirst(3)) != nil else {
        throw CommandLineError("not the name of an adapter, such as hci1: \($1)")
      }
      $0.adapter = $1
    },
    "profile": .value { $0.profile = $1 },
    "profiles-directory": .value { $0.directory = $1 },
    "name": .value {
      guard !$1.isEmpty, $1.utf8.count <= 248 else { throw CommandLineError("1 to 248 bytes") }
      $0.name = $1
    },
    "generate": .value { $0.generators.append($1) },
  ]

  init(_ arguments: [String]) throws(CommandLineError) {
    try ProgramOption.apply(
      arguments, Self.options, to: &self, program: "microbit-peripheral", help: Self.help)
  }

  /// The peripheral to serve. Blocks while it reads the files.
  func peripheral() throws(PeripheralError) -> ServedPeripheral {
    let chosen: Profile
    do throws(ConfigurationErrors) {
      chosen = try Profile.named(profile, in: directory)
    } catch {
      throw PeripheralError("\(error)")
    }
    if !chosen.hasLinks {
      throw PeripheralError(
        "the profile \(chosen.name) is of devices that are only heard: there is nothing to connect to")
    }
    var made: [Generator] = []
    for text in generators { made.append(try Generator(text, of: chosen, seed: UInt64(made.count + 1))) }
    return ServedPeripheral(chosen, generators: made, at: .now)
  }
}
