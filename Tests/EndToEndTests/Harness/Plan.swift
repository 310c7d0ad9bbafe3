import TestSupport

/// How a ``Fixture`` is built. Times are short, to keep the tests fast.
struct Plan: Sendable {
  enum Part: Sendable { case bus, simulator, broker, observer, gateway }
  enum Broker: Sendable {
    case mosquitto, ejabberd
    /// The broker of the cluster's first fixture, and its observer.
    case shared
    /// Of a cluster, in the order in which the gateway tries them; the observer is at the first.
    case nodes([Ejabberd])
    /// A mosquitto of its own, bridged to that of the cluster's first fixture in both directions.
    case bridged
  }

  /// Whether the test takes half a minute: it begins before others, so that nothing waits for it at the end.
  var isLong = false
  /// The gateway's id.
  var id = Fixture.gatewayID
  var devices = 1
  /// Peripherals that are no micro:bits.
  var decoys = 0
  /// The initial period of the micro:bits, in ms.
  var period = 50
  /// More options of the simulator.
  var simulator: [String] = []
  /// The members of the configuration's `devices`.
  var entries = #"{"match":{"name_prefix":"BBC micro:bit"}}"#
  /// The members of the configuration's `profiles`.
  var profiles = ""
  /// The configuration's `profiles_directory`.
  var profilesDirectory: String?
  /// More members of the configuration's `gateway`.
  var gateway = ""
  /// The members of the configuration's `bluetooth`; if there are none, each micro:bit can have a link.
  var bluetooth = ""
  /// More members of the configuration's `mqtt`.
  var mqtt = ""
  /// More members of the configuration.
  var more = ""
  var broker = Broker.mosquitto
  /// mosquitto's access rules, as lines of mosquitto.conf; given the fixture's folder.
  var access: @Sendable (_ folder: String) -> String = { _ in "allow_anonymous true" }
  /// Files of the fixture's folder, by name.
  var files: [String: String] = [:]
  /// The login of the observer.
  var observer: (name: String, password: String)?
  /// Whether the gateway connects to its broker through a ``BrokerProxy``.
  var usesProxy = false
  /// The parts that are not started at first.
  var absent: Set<Part> = []
}
