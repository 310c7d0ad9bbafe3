import GATT
import JSON

/// The content of config.json, with the defaults of what is left out. ConfigurationKeys.swift declares the keys.
package struct Configuration: Sendable, Equatable {
  package var gateway = Gateway()
  package var bluetooth = Bluetooth()
  package var mqtt = MQTT()
  package var spool = Spool()
  package var homeAssistant = HomeAssistant()
  package var http = HTTP()
  package var radio = Radio()
  /// Each peripheral uses the first entry that matches; one without an entry is ignored.
  package var devices = [Device()] { didSet { entries = EntryIndex(devices) } }
  /// Finds the entry of a peripheral among ``devices``.
  private(set) var entries = EntryIndex([Device()])
  /// The profiles that entries may name beside the built-in ones, by their names, each once: those of
  /// ``profilesDirectory`` as well.
  package var profiles: [Profile] = []
  /// The folder with files of profiles.
  package var profilesDirectory: String?
  /// Whether profiles and entries are also taken from a message for the whole fleet.
  package var fleet = false

  package init() {}
}

extension Configuration {
  /// The gateway itself.
  package struct Gateway: Sendable, Equatable {
    /// The gateway's id; nil: the host's name, ``GatewayID/ofThisHost``.
    package var id: GatewayID?
    /// The area of the devices that have none of their own.
    package var area: String?

    package init() {}
  }

  /// The Bluetooth adapters and how they are used.
  package struct Bluetooth: Sendable, Equatable {
    /// The key `adapter`, short for a list of one.
    var adapter: String?
    /// The key `adapters`, if it is given.
    private var list: [String]?
    /// How many links an adapter can have: with another adapter, that one gets the rest.
    package var links = 7
    /// How long a device keeps a link while others wait for one, in seconds.
    package var stay = 60

    /// The adapters to use, as BlueZ names them; at least one, each once.
    package var adapters: [String] {
      get { adapter.map { [$0] } ?? list ?? ["hci0"] }
      set { (adapter, list) = (nil, newValue) }
    }

    /// Whether nobody has named the adapters.
    package var isDefault: Bool { adapter == nil && list == nil }

    /// The key `adapters` with its default: left out where ``adapter`` is given.
    var adaptersKey: [String]? {
      get { adapter == nil ? adapters : nil }
      set { list = newValue }
    }

    package init() {}

    /// This, with the adapters named by the same key as in `other` if they are the same.
    func named(as other: Self) -> Self {
      guard adapters == other.adapters else { return self }
      var renamed = self
      (renamed.adapter, renamed.list) = (other.adapter, other.list)
      return renamed
    }

    /// Whichever key names the adapters.
    package static func == (one: Self, other: Self) -> Bool {
      one.adapters == other.adapters && one.links == other.links && one.stay == other.stay
    }
  }

  /// The connection to the broker, and what is published.
  package struct MQTT: Sendable, Equatable {
    /// A version of MQTT.
    package enum ProtocolVersion: String, CaseIterable, Sendable {
      case v5 = "5"
      case v311 = "3.1.1"
    }

    /// A broker: a name or an address of its host, and the TCP port; nil: ``port``.
    package struct Host: Sendable, Equatable, CustomStringConvertible {
      package let name: String
      package let port: Int?

      package init(_ name: String, port: Int? = nil) { (self.name, self.port) = (name, port) }

      /// The form of config.json: `broker`, `broker:8883`, `[::1]:8883`.
      package var description: String {
        port.map { name.contains(":") ? "[\(name)]:\($0)" : "\(name):\($0)" } ?? name
      }
    }

    /// A name or an address of the broker's host, unless there are ``hosts``.
    package var host = "localhost"
    /// The brokers of a cluster, in the order in which they are tried.
    package var hosts: [Host]?
    /// The TCP port of the brokers that have none of their own, 1…65535.
    package var port = 1883

    /// One broker or more, each with its port.
    package var brokers: [(host: String, port: Int)] {
      (hosts ?? [Host(host)]).map { ($0.name, $0.port ?? port) }
    }

    /// The key `host`, which is left out where ``hosts`` is given.
    var hostKey: String? {
      get { hosts == nil ? host : nil }
      set { host = newValue ?? host }
    }

    /// The version of MQTT that is used.
    package var protocolVersion = ProtocolVersion.v5
    package var username: String?
    /// The file whose first line is the password.
    package var passwordFile: String?
    /// The first line of ``passwordFile``: no key of its own, filled in when the file is loaded.
    package var password: [UInt8]?
    /// The first levels of every topic.
    package var baseTopic = "microbit"
    /// The quality of service of the device topics: 0 or 1.
    package var qos = 1
    /// Whether every reading is sent to `…/readings`.
    package var readings = true
    /// The options of TLS; nil: no TLS.
    package var tls: TLS?

    package init() {}
  }

  /// The files that TLS needs, in PEM, and the protocol to ask for.
  package struct TLS: Sendable, Equatable {
    /// The certificates trusted to sign the broker's; nil: those the host trusts.
    package var caFile: String?
    /// The gateway's own certificate, with ``keyFile``, for brokers that ask for one.
    package var certFile: String?
    /// The key of ``certFile``, without a passphrase.
    package var keyFile: String?
    /// The application protocol to ask for (ALPN); nil: none.
    package var alpn: String?

    package init() {}
  }

  /// Readings that the broker has not acknowledged.
  package struct Spool: Sendable, Equatable {
    /// Whether the readings are kept in a file; otherwise only in memory.
    package var isEnabled = true
    /// How long readings are kept, in seconds.
    package var maxAge = 604_800
    /// The bytes of topics and payloads, at most.
    package var maxSize = 268_435_456
    /// How many readings are published in a second, at most, when the broker is back.
    package var rate = 500

    package init() {}
  }

  /// Announcing to Home Assistant.
  package struct HomeAssistant: Sendable, Equatable {
    /// Whether devices are announced.
    package var discovery = true
    /// The first levels of the discovery topics.
    package var prefix = "homeassistant"

    package init() {}
  }

  /// A language of the page, by its ISO 639-1 code.
  package enum PageLanguage: String, CaseIterable, Sendable {
    /// The first of the browser's languages that the page has.
    case auto
    case en, de, fr, es, it, nl, pt, ja, zh
  }

  /// The page in the browser, and what else is served over HTTP.
  package struct HTTP: Sendable, Equatable {
    package var isEnabled = false
    /// The IP addresses at which the gateway listens. One that is for all networks stands alone.
    package var addresses = ["127.0.0.1"]
    /// The TCP port, 1…65535.
    package var port = 8484
    /// The file whose first line is the password; nil: none is asked for.
    package var passwordFile: String?
    /// The file whose first line is a password with which one can look, but change nothing.
    package var readPasswordFile: String?
    /// The IPv4 address of a proxy that lets in only whom it knows, as Home Assistant's ingress does: nobody else may use
    /// the page; nil: everybody.
    package var proxy: String?

    /// The language of the page where a browser has not chosen one.
    package var language = PageLanguage.auto

    /// Whether only programs on this machine can connect.
    package var isLocal: Bool { networkAddress == nil }
    private var networkAddress: String? { addresses.first { !$0.hasPrefix("127.") && $0 != "::1" } }
    /// Whether an address stands for every one of this machine.
    static func isEverywhere(_ address: String) -> Bool { ["0.0.0.0", "::"].contains(address) }
    /// Where browsers of the network find the page; nil: nowhere, or only through a proxy.
    package var networkURL: String? {
      guard isEnabled, let address = networkAddress, proxy == nil else { return nil }
      return Self.isEverywhere(address)
        ? Self.names(GatewayID.nameOfThisHost).last.map(url(of:)) : url(at: address)
    }
    /// Where a browser finds the page that is served at an address.
    func url(at address: String) -> String {
      url(of: Self.isEverywhere(address) ? "127.0.0.1" : Self.bracketed(address))
    }

    package init() {}
  }

  /// The wired micro:bits that hear others by radio.
  package struct Radio: Sendable, Equatable {
    /// Which serial ports are read.
    package enum Ports: Sendable, Equatable {
      /// The ports of all micro:bits that are plugged in.
      case auto
      case paths([String])
    }

    package var isEnabled = false
    package var ports = Ports.auto
    /// Whether values are sent, through receivers whose program forwards them.
    package var isSending = false

    package init() {}
  }

  /// When a device is connected.
  package enum ConnectMode: String, CaseIterable, Sendable {
    /// All the time, also while others wait for a link.
    case always
    /// Regularly, for as long as its values are read and written, and for commands.
    case onDemand = "on_demand"
  }

  /// When the gateway pairs with a device.
  package enum PairingMode: Sendable, CaseIterable {
    /// The gateway pairs by request; that the device wants pairing is reported.
    case ask
    /// The gateway pairs before the first use; a lost bond is replaced.
    case always
    /// The gateway does not pair, not even by request.
    case never

    /// The value in config.json.
    package var json: JSONValue {
      switch self {
      case .ask: "ask"
      case .always: .bool(true)
      case .never: .bool(false)
      }
    }
  }

  /// An entry of `devices`: for one peripheral, or for all that are alike. The options are properties.
  @dynamicMemberLookup
  package struct Device: Sendable, Equatable {
    /// Which peripherals the entry is for.
    package var match = Match(namePrefix: Profile.microbitNamePrefix) {
      // A sender by radio has no other profile; one that was given is refused.
      didSet { if match.isRadio, self.profile == nil { self.profile = Profile.radio.name } }
    }
    /// What is set for the peripherals.
    package var options = DeviceOptions()
    /// Whether the entry is not of the file, but of the ``FleetConfiguration``.
    package internal(set) var isOfFleet = false

    package init() {}

    /// The value of an option; nil: the entry does not set it.
    package subscript<Value, Effective>(
      dynamicMember path: KeyPath<DeviceOptionTable, DeviceOption<Value, Effective>>
    ) -> Value? {
      get { options[dynamicMember: path] }
      set { options[dynamicMember: path] = newValue }
    }
  }
}
