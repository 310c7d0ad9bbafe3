import GATT

/// What the user wants: the content of config.json, complete with the defaults of what is left out.
///
/// The names of the keys, and what each may hold, are declared in ConfigurationKeys.swift.
struct Configuration: Sendable, Equatable {
  var gateway = Gateway()
  var bluetooth = Bluetooth()
  var mqtt = MQTT()
  var homeAssistant = HomeAssistant()
  /// The first entry that matches a peripheral is its own; one that none matches is left alone.
  var devices = [Device()]
}

extension Configuration {
  struct Gateway: Sendable, Equatable {
    /// Nil: the host's name, ``GatewayID/ofThisHost``.
    var id: GatewayID?
    var area: String?
  }

  struct Bluetooth: Sendable, Equatable {
    /// As BlueZ names it: `hci0`.
    var adapter = "hci0"
    var notify = NotificationMethod.signal
  }

  struct MQTT: Sendable, Equatable {
    enum ProtocolVersion: String, CaseIterable, Sendable {
      case v5 = "5"
      case v311 = "3.1.1"
    }

    var host = "localhost"
    var port = 1883
    var protocolVersion = ProtocolVersion.v5
    var username: String?
    var passwordFile: String?
    /// The content of ``passwordFile``: no key of its own, filled in when the file is loaded.
    var password: [UInt8]?
    /// The first levels of every topic.
    var baseTopic = "microbit"
    /// The quality of service of the device topics: 0 or 1.
    var qos = 1
    /// Whether every reading is sent to `…/readings`.
    var readings = true
    /// Nil: no TLS.
    var tls: TLS?
  }

  struct TLS: Sendable, Equatable {
    /// The certificates trusted to sign the broker's; nil: those the host trusts.
    var caFile: String?
    /// The gateway's own certificate, with ``keyFile``, for brokers that ask for one.
    var certFile: String?
    var keyFile: String?
  }

  struct HomeAssistant: Sendable, Equatable {
    var discovery = true
    /// The first levels of the discovery topics.
    var prefix = "homeassistant"
  }

  /// A peripheral, or several, and what is wanted of it.
  struct Device: Sendable, Equatable {
    var match = Match.namePrefix("BBC micro:bit")
    /// Nil: the address. Where several peripherals match the prefix, the first that comes takes the id, and the
    /// others go by their addresses.
    var id: DeviceID?
    var name: String?
    var area: String?
    /// The wanted period of the temperature, in ms; nil: what the micro:bit has.
    var period: Int?
    /// A device that is not is known, and left alone; nil: it is.
    var isEnabled: Bool?
    /// The gateway that serves it, and no other; nil: whichever has it in reach.
    var gateway: GatewayID?
  }

  /// Which peripherals an entry is about.
  enum Match: Sendable, Hashable {
    case identifier(BluetoothAddress)
    case namePrefix(String)

    var isIdentifier: Bool {
      switch self {
      case .identifier: true
      case .namePrefix: false
      }
    }

    /// - Parameter name: the Bluetooth name; nil while none was heard.
    func matches(_ identifier: BluetoothAddress, name: String?) -> Bool {
      switch self {
      case .identifier(let wanted): identifier == wanted
      // Byte by byte: a name from the air that only looks the same is another one.
      case .namePrefix(let prefix): name?.utf8.starts(with: prefix.utf8) ?? false
      }
    }
  }

  /// The entry that is the peripheral's own: the first that matches.
  func device(matching identifier: BluetoothAddress, name: String?) -> Device? {
    devices.first { $0.match.matches(identifier, name: name) }
  }
}
