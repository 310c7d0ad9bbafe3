import Testing

@testable import Configuration

@Suite struct ReloadPlanTests {
  func parse(_ text: String) throws -> Configuration { try Configuration.parse(Array(text.utf8)).get() }

  @Test func theSameConfigurationChangesNothing() throws {
    let plan = Configuration().changes(from: Configuration())
    #expect(plan == ReloadPlan(configuration: Configuration(), waiting: []))
    let spelledOut = try parse(#"{"mqtt":{"port":1883},"devices":[{}]}"#)
    #expect(spelledOut.changes(from: Configuration()) == plan)
  }

  /// Every key with a value that is not its default, and whether it can change without a restart.
  private static let keys: [(key: String, text: String, isLive: Bool)] = [
    ("gateway.id", #"{"gateway":{"id":"x"}}"#, false),
    ("gateway.area", #"{"gateway":{"area":"x"}}"#, true),
    ("bluetooth.adapters", #"{"bluetooth":{"adapters":["hci0","hci1"]}}"#, false),
    ("bluetooth.links", #"{"bluetooth":{"links":5}}"#, false),
    ("bluetooth.stay", #"{"bluetooth":{"stay":5}}"#, false),
    ("mqtt.host", #"{"mqtt":{"host":"x"}}"#, false),
    ("mqtt.port", #"{"mqtt":{"port":1}}"#, false),
    ("mqtt.protocol", #"{"mqtt":{"protocol":"3.1.1"}}"#, false),
    ("mqtt.username", #"{"mqtt":{"username":"x"}}"#, false),
    ("mqtt.base_topic", #"{"mqtt":{"base_topic":"x"}}"#, false),
    ("mqtt.qos", #"{"mqtt":{"qos":0}}"#, true),
    ("mqtt.readings", #"{"mqtt":{"readings":false}}"#, true),
    ("mqtt.tls", #"{"mqtt":{"tls":{}}}"#, false),
    ("spool.enabled", #"{"spool":{"enabled":false}}"#, false),
    ("spool.max_age", #"{"spool":{"max_age":60}}"#, false),
    ("spool.max_size", #"{"spool":{"max_size":65536}}"#, false),
    ("spool.rate", #"{"spool":{"rate":20}}"#, false),
    ("home_assistant.discovery", #"{"home_assistant":{"discovery":false}}"#, true),
    ("home_assistant.prefix", #"{"home_assistant":{"prefix":"x"}}"#, true),
    ("http.enabled", #"{"http":{"enabled":true}}"#, true),
    ("http.address", #"{"http":{"address":"127.0.0.2"}}"#, true),
    ("http.port", #"{"http":{"port":80}}"#, true),
    ("http.password_file", #"{"http":{"password_file":"x"}}"#, true),
    ("http.proxy", #"{"http":{"proxy":"172.30.32.2"}}"#, true),
    ("http.language", #"{"http":{"language":"de"}}"#, true),
    ("radio.enabled", #"{"radio":{"enabled":true}}"#, true),
    ("radio.ports", #"{"radio":{"ports":["/dev/ttyACM0","/dev/ttyACM1"]}}"#, true),
    ("radio.send", #"{"radio":{"send":true}}"#, true),
    ("devices", #"{"devices":[]}"#, true),
    ("devices", #"{"devices":[{"match":{"radio":"zotut"}}]}"#, true),
    ("devices", #"{"devices":[{"period":70}]}"#, true),
    ("devices", #"{"devices":[{"properties":"auto","values":{"soil":{"unit":"%","offset":1.5}}}]}"#, true),
    ("devices", #"{"devices":[{"values":false}]}"#, true),
    ("devices", #"{"devices":[{"adjust":{"temperature":{"offset":-4.5,"report":{"change":1}}}}]}"#, true),
    ("devices", #"{"devices":[{"match":{"name":"a","min_rssi":-60}}]}"#, true),
    ("devices", #"{"devices":[{"properties":["button_a"],"desired":{"accelerometer_period":100}}]}"#, true),
    ("fleet", #"{"fleet":true}"#, true),
    ("profiles_directory", #"{"profiles_directory":"profiles.d"}"#, true),
    (
      "profiles",
      #"{"profiles":{"x":{"properties":{"a":{"service":"1111","characteristic":"2222","access":["read"],"#
        + #""type":"uint8"}}}}}"#, true
    ),
  ]

  @Test(arguments: keys)
  func keyChangesLiveOrWaitsForARestart(key: String, text: String, isLive: Bool) throws {
    for (old, new) in [(Configuration(), try parse(text)), (try parse(text), Configuration())] {
      let plan = new.changes(from: old)
      #expect(plan.waiting == (isLive ? [] : [key]))
      // The running configuration changes only by what takes effect at once.
      #expect(plan.configuration == (isLive ? new : old))
    }
  }

  /// The tests above do not cover a key that is missing from the table.
  @Test func everyKeyIsInTheTable() throws {
    var known = Set(Self.keys.map(\.key))
    known.formUnion([
      "mqtt.hosts", "mqtt.password_file", "http.read_password_file", "$schema", "bluetooth.adapter",
    ])
    for key in Configuration.keys {
      guard case .object(let members) = key.shape else {
        #expect(known.contains(key.name))
        continue
      }
      for member in members { #expect(known.contains("\(key.name).\(member.name)")) }
    }
  }

  @Test func changesAreSortedIntoLiveAndRestart() throws {
    let old = try parse(#"{"gateway":{"id":"a","area":"A"},"mqtt":{"host":"one","tls":{"ca_file":"x"}}}"#)
    let new = try parse(
      #"{"gateway":{"id":"b","area":"B"},"mqtt":{"host":"two","qos":0,"tls":{"ca_file":"y"}},"devices":[]}"#)
    let plan = new.changes(from: old)
    var expected = old
    (expected.gateway.area, expected.mqtt.qos, expected.devices) = ("B", 0, [])
    #expect(plan.configuration == expected)
    #expect(plan.waiting == ["gateway.id", "mqtt.host", "mqtt.tls"])
    let again = plan.configuration.changes(from: old)
    #expect(again == ReloadPlan(configuration: plan.configuration, waiting: []))
    #expect(new.changes(from: plan.configuration) == plan)
  }

  @Test func theSameAdaptersByTheOtherKeyAreNoChange() throws {
    let one = try parse(#"{"bluetooth":{"adapter":"hci1"}}"#)
    let list = try parse(#"{"bluetooth":{"adapters":["hci1"],"links":5}}"#)
    #expect(list.changes(from: one).waiting == ["bluetooth.links"])
    #expect(one.changes(from: list).waiting == ["bluetooth.links"])
    #expect(one.changes(from: one).waiting == [])
    #expect(one.changes(from: list).configuration == list)
    let other = try parse(#"{"bluetooth":{"adapter":"hci2"}}"#)
    #expect(other.changes(from: one).waiting == ["bluetooth.adapter"])
  }

  @Test func changedPasswordInTheSameFileNeedsNoRestart() {
    var old = Configuration()
    old.mqtt.passwordFile = "p"
    var new = old
    old.mqtt.password = [1]
    new.mqtt.password = [2]
    #expect(new.changes(from: old).waiting == [], "it is read for each connection")
    old.mqtt.passwordFile = "q"
    #expect(new.changes(from: old).waiting == ["mqtt.password_file"])
  }
}
